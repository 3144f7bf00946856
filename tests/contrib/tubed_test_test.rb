# contrib/test-mode/tubed_test.rb with beaneater.
require 'minitest/autorun'
require 'beaneater'
require_relative '../../contrib/test-mode/tubed_test'

SERVER = TubedTest.new

class TubedTestTest < Minitest::Test
  def setup = @bs = Beaneater.new(SERVER.address)

  def teardown
    @bs.close
    SERVER.reset
  end

  def mails = @bs.tubes['mails']

  def test_a_delayed_job_is_ready_after_its_delay
    mails.put('hello', delay: 3600)
    assert_raises(Beaneater::TimedOutError) { mails.reserve(0) }
    assert_equal 3599.5, SERVER.advance(3599.5)
    assert_raises(Beaneater::TimedOutError) { mails.reserve(0) }
    SERVER.advance(0.5)
    job = mails.reserve(0)
    assert_equal 'hello', job.body
    job.delete
    assert_equal ['put 1 mails', 'timed-out c1', 'timed-out c1', 'reserve 1 c1', 'delete 1'], SERVER.events
  end

  def test_each_test_begins_with_an_empty_queue
    assert_empty SERVER.jobs
    assert_equal '1', mails.put('hello')[:id]
    assert_equal [1, 'mails', 'ready', 'hello'], SERVER.jobs.first.values_at('id', 'tube', 'state', 'body')
  end

  def test_faults
    SERVER.fault('put', 'OUT_OF_MEMORY')
    assert_raises(Beaneater::OutOfMemoryError) { mails.put('hello') }
    assert_equal 'INSERTED', mails.put('hello')[:status]
    SERVER.fault('any', 'INTERNAL_ERROR', count: 5)
    SERVER.no_faults
    assert_equal 1, mails.peek(:ready).id.to_i
  end

  def test_snapshots
    mails.put('hello')
    SERVER.snapshot('base')
    mails.clear
    assert_nil mails.peek(:ready)
    SERVER.restore('base')
    assert_equal ['hello'], SERVER.jobs.map { |job| job['body'] }
    assert_raises(TubedTest::Error) { SERVER.restore('none') }
  end

  def test_await_waits_for_another_thread
    refute SERVER.await('put', seconds: 0.01)
    thread = Thread.new { Beaneater.new(SERVER.address).tubes['mails'].put('hello') }
    assert SERVER.await('put')
    thread.join
  end

  def test_a_missing_program_is_named
    error = assert_raises(TubedTest::Error) { TubedTest.new(program: '/nonexistent/tubed') }
    assert_match(%r{/nonexistent/tubed}, error.message)
  end

  def test_the_server_ends_when_the_test_process_is_killed
    script = 'require "./contrib/test-mode/tubed_test"; s = TubedTest.new; puts s.address; $stdout.flush; sleep'
    IO.popen([RbConfig.ruby, '-e', script], chdir: File.expand_path('../..', __dir__)) do |child|
      host, port = child.gets.chomp.split(':')
      connection = TCPSocket.new(host, port)
      Process.kill(:KILL, child.pid)
      assert_nil connection.gets
    end
  end
end
