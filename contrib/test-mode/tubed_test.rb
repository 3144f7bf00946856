# A work-queue server for a test suite in Ruby: tubed in test mode, with a clock that the test moves.
#
#   require 'tubed_test'
#   SERVER = TubedTest.new
#
#   def setup = @queue = Beaneater.new(SERVER.address)
#   def teardown
#     @queue.close
#     SERVER.reset
#   end
#   # in a test: SERVER.advance(3600)
#
# The server ends with this process, however it ends: it reads its standard input from a pipe that
# only this process has open. The program is $TUBED, or tubed on the PATH.
require 'json'

class TubedTest
  # The server has refused a request of the test, or has ended.
  class Error < StandardError; end

  # The address as Beaneater takes it: "127.0.0.1:37797".
  attr_reader :address

  # clock: 'manual', 'auto' or 'real'. More flags of tubed may follow, such as '--limits-job-bytes=1MiB'.
  def initialize(*flags, clock: 'manual', program: ENV.fetch('TUBED', 'tubed'))
    @mutex = Mutex.new
    @pipe = IO.popen([program, "--test-mode=#{clock}", *flags], 'r+b')
    @pipe.close_on_exec = true
    @address = line
  rescue Errno::ENOENT
    raise Error, "there is no program #{program}: install tubed, or set TUBED to its path"
  end

  # Sends one test verb or command and returns the line of the reply.
  def control(command)
    @mutex.synchronize do
      @pipe.write("#{command}\n")
      reply = line
      raise Error, "#{command}: #{reply}" if reply.match?(/\A(BAD_FORMAT|UNKNOWN_COMMAND|OUT_OF_MEMORY|NOT_FOUND)/)
      reply
    end
  end

  # The same for a command whose reply is OK and a block. Returns the block.
  def block(command)
    @mutex.synchronize do
      @pipe.write("#{command}\n")
      word, size = line.split
      raise Error, "#{command}: #{word}" unless word == 'OK'
      @pipe.read(size.to_i).tap { @pipe.read(1) }.force_encoding('UTF-8')
    end
  end

  # Moves the clock; everything that was due has been done. Returns the seconds since its beginning.
  def advance(seconds)
    control("test-advance #{(seconds * 1000).round}ms").split.last.to_i / 1000.0
  end

  # Forgets all jobs, pauses, faults and events, and resets ids and the clock. A connection that
  # stays open uses and watches "default" again; Beaneater does not know that, so each test opens its
  # own.
  def reset = control('test-reset')

  # Keeps the jobs under a name, and brings them back.
  def snapshot(name) = control("test-snapshot #{name}")
  def restore(name) = control("test-restore #{name}")

  # The next commands of this verb, or of 'any', are answered so: an error word, 'CLOSE' or 'HANG'.
  def fault(verb, reply, count: 1) = control("test-fault #{verb} #{count} #{reply}")
  def no_faults = control('test-fault off')

  # The events since the last reset: ["put 1 mails", "reserve 1 c1"].
  def events
    block('test-events').lines.drop(1).map { |one| one.chomp.delete_prefix('- ').sub(/\A\d+ /, '') }
  end

  # Waits, in real time, until `count` events of this word have happened since the last reset.
  # False: they have not.
  def await(event, count: 1, seconds: 5)
    control("test-await #{event} #{count} #{(seconds * 1000).round}").start_with?('AWAITED')
  end

  # The jobs, as hashes: {"id" => 1, "tube" => "mails", "state" => "ready", "body" => "…", …}.
  def jobs
    dump.select { |one| one.key?('state') }
  end

  # All lines of test-dump, as hashes.
  def dump
    block('test-dump').lines.map { |one| JSON.parse(one) }
  end

  # Ends the server.
  def stop
    @pipe.close unless @pipe.closed?
  end

  private

  def line
    @pipe.gets&.chomp or raise Error, 'tubed has ended; its message is on standard error'
  end
end
