# contrib/test-mode/hydroponic.rb: the functions of hydroponic_bean, and correct results where
# hydroponic_bean is wrong.
require 'minitest/autorun'
require 'yaml'
require_relative '../../contrib/test-mode/hydroponic'

Beaneater.hydroponic!

class HydroponicTest < Minitest::Test
  include HydroponicBean::TestHelper

  def setup = @bs = Beaneater.new('queue.example.com:12345')

  def teardown
    @bs.close
    HydroponicBean.clear
  end

  def tube(name = 'mails') = @bs.tubes[name]

  def send_line(line) = @bs.connection.transmit(line)

  # --- What it offers

  def test_the_address_is_parsed_and_not_connected_to
    assert_equal ['queue.example.com', 12345], [@bs.connection.host, @bs.connection.port]
    assert_equal '1', tube.put('x')[:id]
  end

  def test_clear_empties_everything_and_ids_begin_at_1
    2.times { tube.put('x') }
    HydroponicBean.clear
    assert_empty HydroponicBean.jobs
    assert_equal '1', tube.put('x')[:id]
  end

  def test_a_connection_goes_on_after_clear
    tube.put('x')
    tube.reserve(0)
    HydroponicBean.clear
    tube.put('y')
    assert_equal 'y', tube.reserve(0).body
  end

  def test_jobs_tubes_connections_and_commands_can_be_looked_at
    tube.put('hello', pri: 5, ttr: 9)
    tube.put('later', delay: 60)
    assert_equal ['hello', 'ready', 5, 9, 'mails'],
                 HydroponicBean.find_job(1).to_h.values_at(:body, :state, :pri, :ttr, :tube_name)
    assert_equal %w[ready delayed], HydroponicBean.jobs.map(&:state)
    assert_equal [1, 2], HydroponicBean.tubes['mails'].jobs.map(&:id)
    assert_equal ['mails'], HydroponicBean.connections.map { |one| one['used'] }
    assert_equal 2, HydroponicBean.commands['put']
    assert_nil HydroponicBean.find_job(3)
    assert_empty HydroponicBean.tubes['of no one'].jobs
  end

  def test_a_connection_reads_writes_and_says_what_it_did
    socket = @bs.connection.connection
    refute socket.producer? || socket.worker? || socket.waiting?
    tube.put('x')
    assert socket.producer?
    tube.reserve(0)
    assert socket.worker?
    socket.write("list-tube-used\r\n")
    assert_equal "USING mails\r\n", socket.readline
    waiting = Beaneater.new('queue.example.com')
    thread = Thread.new { waiting.tubes['other'].reserve(60) rescue nil }
    Thread.pass until waiting.connection.connection.waiting?
    tube('other').put('y')
    thread.join
    refute waiting.connection.connection.waiting?
    waiting.close
    socket.close
    assert socket.closed?
  end

  def test_the_rest_of_the_protocol
    tube.put('x', delay: 60)
    assert_equal 'KICKED', send_line('kick-job 1')[:status]
    assert_equal ['FOUND', 'x'], send_line('peek 1').values_at(:status, :body)
    assert_equal ['mails', 'ready'], send_line('stats-job 1')[:body].values_at('tube', 'state')
    assert_equal '2', send_line('watch other')[:id]
    assert_equal %w[default other], send_line('list-tubes-watched')[:body]
    assert_equal '1', send_line('ignore other')[:id]
    assert_raises(Beaneater::NotIgnoredError) { send_line('ignore default') }
    tube.put('y', delay: 60)
    assert_equal 'y', tube.peek(:delayed).body
    assert_raises(Beaneater::NotFoundError) { send_line('delete 9') }
  end

  def test_assert_job_put_counts_and_returns_the_value
    assert_equal :value, assert_job_put { tube.put('x') and :value }
    assert_job_put(2) { 2.times { tube.put('x') } }
    assert_job_put(0) {}
    assert_raises(Minitest::Assertion) { assert_job_put(2) { tube.put('x') } }
  end

  def test_time_is_moved_by_the_test
    tube.put('x', delay: 3600)
    assert_nil tube.peek(:ready)
    HydroponicBean.advance(3600)
    assert_equal 'x', tube.peek(:ready).body
  end

  def test_the_commands_of_a_worker
    tube.put('x')
    job = tube.reserve(0)
    assert_equal 'reserved', job.stats.state
    job.touch
    job.release(delay: 0)
    job = tube.reserve(0)
    job.bury
    assert_equal 'buried', tube.peek(:buried).stats.state
    assert_equal '1', tube.kick(10)[:id]
    tube.reserve(0).delete
    assert_nil @bs.jobs.find(1)
    assert_equal %w[default mails], @bs.tubes.all.map(&:name).sort
    assert_includes @bs.tubes.watched.map(&:name), 'mails'
  end

  # --- Where it is wrong

  def test_stats_of_the_server
    tube.put('x')
    assert_equal 1, @bs.stats.current_jobs_ready
    assert_equal 1, @bs.stats.total_jobs
    assert_match(/\A\d+\.\d+/, @bs.stats.version.to_s)
  end

  def test_list_tube_used_quit_and_reserve_job
    assert_equal 'default', send_line('list-tube-used')[:id]
    tube.put('x')
    assert_equal ['RESERVED', '1', 'x'], send_line('reserve-job 1').values_at(:status, :id, :body)
    @bs.connection.connection.write("quit\r\n")
    assert_nil @bs.connection.connection.gets
  end

  def test_an_unknown_command_is_answered_and_calls_no_method
    %w[exit sleep fork nonsense].each do |word|
      assert_raises(Beaneater::UnknownCommandError) { send_line(word) }
    end
    assert_raises(Beaneater::BadFormatError) { send_line('delete x') }
  end

  def test_a_pause_holds_jobs_back
    tube.put('x')
    tube.pause(600)
    assert_equal [600, 600], [tube.stats.pause, tube.stats.pause_time_left]
    assert_raises(Beaneater::TimedOutError) { tube.reserve(0) }
    HydroponicBean.advance(599)
    assert_raises(Beaneater::TimedOutError) { tube.reserve(0) }
    HydroponicBean.advance(1)
    assert_equal 'x', tube.reserve(0).body
  end

  def test_the_delay_of_a_release_counts_from_the_release
    tube.put('x')
    HydroponicBean.advance(100)
    tube.reserve(0).release(delay: 50)
    HydroponicBean.advance(49)
    assert_equal 'delayed', HydroponicBean.find_job(1).state
    HydroponicBean.advance(1)
    assert_equal 'ready', HydroponicBean.find_job(1).state
  end

  def test_a_kick_takes_buried_jobs_or_delayed_jobs
    tube.put('delayed', delay: 60)
    tube.put('buried')
    tube.reserve(0).bury
    assert_equal '1', tube.kick(10)[:id]
    assert_equal %w[delayed ready], HydroponicBean.jobs.map(&:state)
    tube.reserve(0).delete
    assert_equal '1', tube.kick(10)[:id]
    assert_equal ['ready'], HydroponicBean.jobs.map(&:state)
  end

  def test_a_ready_job_is_given_in_the_last_second_of_another
    tube.put('held', ttr: 1)
    tube.put('ready')
    tube.reserve(0)
    assert_equal 'ready', tube.reserve(0).body
    assert_raises(Beaneater::DeadlineSoonError) { tube.reserve(0) }
  end

  def test_urgent_is_ready_and_below_1024
    tube.put('a', pri: 1023)
    tube.put('b', pri: 1024)
    tube.put('c', pri: 1, delay: 60)
    assert_equal 1, tube.stats.current_jobs_urgent
    tube.reserve(0)
    assert_equal 0, tube.stats.current_jobs_urgent
  end

  def test_a_ttr_of_0_is_1
    tube.put('x', ttr: 0)
    assert_equal 1, @bs.jobs.find(1).stats.ttr
    tube.reserve(0)
    HydroponicBean.advance(1)
    assert_equal ['ready', 1], [@bs.jobs.find(1).stats.state, @bs.jobs.find(1).stats.timeouts]
  end

  def test_a_reserve_of_an_empty_queue_does_not_block_for_ever
    HydroponicBean.reserve_limit = 0.05
    assert_raises(HydroponicBean::NothingToReserve) { tube.reserve }
    tube.put('x')
    assert_equal 'x', tube.reserve.body
  ensure
    HydroponicBean.reserve_limit = 5
  end

  def test_a_reserve_with_a_timeout_returns_at_once
    begin_time = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_raises(Beaneater::TimedOutError) { tube.reserve(600) }
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - begin_time, :<, 60
    # Even while another connection is idle, after a bounded real time.
    HydroponicBean.reserve_limit = 0.05
    idle = Beaneater.new('another:1')
    assert_raises(Beaneater::TimedOutError) { tube.reserve(600) }
    idle.close
  ensure
    HydroponicBean.reserve_limit = 5
  end

  def test_a_reply_larger_than_a_pipe
    body = 'x' * 65_000
    3.times { tube.put(body) }
    assert_equal [body] * 3, Array.new(3) { tube.reserve(0).body }
  end

  def test_the_yaml_of_statistics
    tube.put('x')
    socket = @bs.connection.connection
    socket.write("stats-tube mails\r\n")
    block = socket.read(socket.gets.split.last.to_i)
    socket.read(2)
    assert block.start_with?("---\nname: mails\ncurrent-jobs-urgent: ")
    assert_equal 1, YAML.safe_load(block)['total-jobs']
  end

  def test_threads_and_several_connections
    threads = Array.new(4) do
      Thread.new do
        bs = Beaneater.new('queue.example.com')
        5.times { bs.tubes['mails'].put('x') }
        bs.close
      end
    end
    threads.each(&:join)
    assert_equal 20, HydroponicBean.jobs.size
  end
end
