# A replacement for hydroponic_bean: the same calls, on a real server in test mode.
#
#   require 'hydroponic'
#   Beaneater.hydroponic!
#
#   include HydroponicBean::TestHelper
#   def after_teardown
#     super
#     HydroponicBean.clear
#   end
#
# What differs: jobs, tubes and connections are copies of what the server has, so that setting their
# attributes changes nothing, and deleted jobs are gone; the server's address is not the one given.
# Time does not follow Time.now: HydroponicBean.advance(3600) replaces Timecop.travel. While every
# connection waits in a reserve the clock jumps to the next deadline, so that a reserve with a
# timeout returns at once.
require 'base64'
require 'beaneater'
require_relative 'tubed_test'

module HydroponicBean
  # A reserve without a timeout found nothing that could ever become ready.
  class NothingToReserve < StandardError; end

  Job = Struct.new(:id, :tube_name, :state, :pri, :delay, :ttr, :age, :body, :reserves, :timeouts,
                   :releases, :buries, :kicks, keyword_init: true)
  Tube = Struct.new(:name, :pause, :jobs, keyword_init: true)

  class << self
    # How many real seconds a reserve may wait before it raises NothingToReserve.
    attr_accessor :reserve_limit

    def server
      @server ||= TubedTest.new(clock: 'auto')
    end

    # No jobs, ids from 1, the clock at its beginning. Connections stay.
    def clear
      server.reset
      open_connections.each(&:begin_anew)
      nil
    end

    # The connections of this process, which keep this list themselves.
    def open_connections = @open_connections ||= []

    def advance(seconds) = server.advance(seconds)

    # The jobs that exist. (Those that were deleted are in server.events.)
    def jobs
      server.jobs.map { |one| job_of(one) }
    end

    def find_job(id) = jobs.find { |job| job.id == id.to_i }

    def tubes
      all = jobs.group_by(&:tube_name)
      found = Hash.new { |_, name| Tube.new(name: name, pause: 0, jobs: []) }
      server.dump.each do |one|
        next unless one.key?('pause')
        found[one['tube']] = Tube.new(name: one['tube'], pause: one['pause'], jobs: all.fetch(one['tube'], []))
      end
      found
    end

    # The open connections, as hashes with "connection", "used", "watched" and "waiting".
    def connections
      server.dump.select { |one| one.key?('connection') && one['connection'] != 'c0' }
    end

    # How often each command was received.
    def commands
      server.block('stats').scan(/^cmd-(\S+): (\d+)$/).to_h { |word, count| [word, count.to_i] }
    end

    private

    def job_of(one)
      body = one['body'] || Base64.strict_decode64(one['body_base64'])
      Job.new(id: one['id'], tube_name: one['tube'], state: one['state'], pri: one['priority'],
              delay: one['delay'], ttr: one['ttr'], age: one['age'], body: body,
              reserves: one['reserves'], timeouts: one['timeouts'], releases: one['releases'],
              buries: one['buries'], kicks: one['kicks'])
    end
  end
  self.reserve_limit = 5

  # Connects to the test server, whatever address is given, and bounds every wait.
  module Connection
    def transmit(command, **options)
      word, seconds = command.to_s.split
      return super unless %w[reserve reserve-with-timeout].include?(word)
      Thread.current[:hydroponic_wait] = { seconds: seconds&.to_i }
      super
    rescue NothingToReserve
      # The server still waits: a new connection replaces this connection.
      close
      establish_connection
      begin_anew
      raise
    ensure
      Thread.current[:hydroponic_wait] = nil
    end

    def close
      HydroponicBean.open_connections.delete(self)
      super
    end

    # The server has forgotten which tubes this connection uses and watches.
    def begin_anew
      tubes_watched.each { |tube| transmit("watch #{tube}") }
      transmit('ignore default') unless tubes_watched.include?('default')
      transmit("use #{tube_used}")
    end

    protected

    def establish_connection
      @address = address.first if address.is_a?(Array)
      host, port = address.split(':')
      @host, @port = host, Integer(port || Beaneater::Connection::DEFAULT_PORT)
      host, port = HydroponicBean.server.address.split(':')
      @connection = Socket.new(host, Integer(port))
      HydroponicBean.open_connections << self
    end
  end

  # The first line of the reply to a reserve may never come.
  class Socket < TCPSocket
    def producer? = @producer == true
    def worker? = @worker == true
    def waiting? = @waiting == true

    def write(*data)
      word = data.first.to_s[/\A[a-z-]+/]
      @producer ||= word == 'put'
      @worker ||= %w[reserve reserve-with-timeout reserve-job].include?(word)
      super
    end

    def readline(*)
      @waiting = !Thread.current[:hydroponic_wait].nil?
      bounded_readline { super }
    ensure
      @waiting = false
    end

    private

    def bounded_readline
      wait = Thread.current[:hydroponic_wait]
      return yield if wait.nil?
      seconds = wait[:seconds]
      limit = [seconds, HydroponicBean.reserve_limit].compact.min
      return yield if IO.select([self], nil, nil, limit)
      if seconds.nil?
        raise NothingToReserve, "no job became ready within #{limit} s: none is delayed, or another connection is idle"
      end
      # Another connection is idle, so the clock has not jumped.
      HydroponicBean.server.advance(seconds)
      yield
    end
  end

  module TestHelper
    # Fails unless the block puts `count` jobs. Returns the block's value.
    def assert_job_put(count = 1)
      before = HydroponicBean.server.events.count { |event| event.start_with?('put ') }
      result = yield
      put = HydroponicBean.server.events.count { |event| event.start_with?('put ') } - before
      assert_equal(count, put, "expected #{count} jobs to be put, but #{put} were")
      result
    end
  end
end

class Beaneater
  # From now on every new connection is one to the test server.
  def self.hydroponic!
    Connection.prepend(HydroponicBean::Connection)
  end
end
