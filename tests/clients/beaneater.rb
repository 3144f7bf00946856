# Runs the Ruby client beaneater against the server at TUBED_TEST_HOST:TUBED_TEST_PORT.
require 'beaneater'
require 'timeout'

ADDRESS = "#{ENV.fetch('TUBED_TEST_HOST')}:#{ENV.fetch('TUBED_TEST_PORT')}"
TUBE = 'client-beaneater'
$failures = 0

def check(what, expected, actual)
  ok = expected === actual
  $failures += 1 unless ok
  puts ok ? "ok    #{what}" : "FAIL  #{what}: expected #{expected.inspect}, got #{actual.inspect}"
end

def check_raises(what, error)
  yield
  check(what, error, nil)
rescue StandardError => e
  check(what, error, e)
end

def seconds
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
end

def put_and_reserve(tube)
  id = tube.put("line one\r\n\0line two", pri: 7, delay: 0, ttr: 30)[:id]
  check('put gives an id', true, id.to_i.positive?)
  stats = tube.peek(:ready).stats
  check('stats-job of a ready job', ['ready', 7, 30, 0, TUBE, id.to_i],
        [stats.state, stats.pri, stats.ttr, stats.delay, stats.tube, stats.id])
  check('peek gives the body', "line one\r\n\0line two", tube.client.jobs.find(id).body)
  job = tube.reserve(5)
  check('reserve gives the job', [id, "line one\r\n\0line two"], [job.id, job.body])
  check('it is reserved once', ['reserved', 1], [job.stats.state, job.stats.reserves])
  check('time-left is within the TTR', 1..30, job.stats.time_left)
  job
end

def work_on(tube, job)
  check('touch', 'TOUCHED', job.touch[:status])
  check('release', 'RELEASED', job.release(pri: 5, delay: 0)[:status])
  check('release is counted', ['ready', 5, 1],
        [job.stats.state, job.stats.pri, job.stats.releases])

  job = tube.reserve(5)
  check('bury', 'BURIED', job.bury(pri: 4)[:status])
  check('bury is counted', ['buried', 4, 1], [job.stats.state, job.stats.pri, job.stats.buries])
  check('stats-tube counts the buried job', 1, tube.stats.current_jobs_buried)
  check('peek-buried', job.id, tube.peek(:buried).id)
  check('kick moves one', '1', tube.kick(10)[:id])
  check('kick is counted', ['ready', 1], [job.stats.state, job.stats.kicks])

  job = tube.reserve(5)
  job.release(pri: 4, delay: 60)
  check('release with a delay', ['delayed', 60], [job.stats.state, job.stats.delay])
  check('peek-delayed', job.id, tube.peek(:delayed).id)
  check('kick-job', 'KICKED', job.kick[:status])

  job = tube.reserve(5)
  check('delete', 'DELETED', job.delete[:status])
  check('the job is gone', false, job.exists?)
  check('peek of nothing', nil, tube.client.jobs.find(job.id))
  check_raises('a second delete', Beaneater::NotFoundError) { job.delete }
end

def order(tube)
  late = tube.put('late', pri: 20)[:id]
  soon = tube.put('soon', pri: 10)[:id]
  jobs = [tube.reserve(5), tube.reserve(5)]
  check('the smaller priority comes first', [soon, late], jobs.map(&:id))
  jobs.each(&:delete)
end

def pause(tube)
  tube.put('paused')
  check('pause-tube', 'PAUSED', tube.pause(60)[:status])
  check_raises('a paused tube gives nothing', Beaneater::TimedOutError) { tube.reserve(0) }
  check('stats-tube shows the pause', [60, 1], [tube.stats.pause, tube.stats.cmd_pause_tube])
  check('and what is left of it', 1..60, tube.stats.pause_time_left)
  tube.pause(0)
  tube.reserve(5).delete
end

def ttr(tube, other)
  tube.put('slow', ttr: 10)
  job = again = nil
  waited = seconds do
    job = tube.reserve(5)
    check_raises('DEADLINE_SOON in the last second', Beaneater::DeadlineSoonError) { tube.reserve(600) }
    again = other.reserve(600)
  end
  check('the job comes back after its TTR', job.id, again.id)
  check('and not before', (9.5..), waited)
  check('the timeout is counted', [1, 2], [again.stats.timeouts, again.stats.reserves])
  check('in stats too', 1, tube.client.stats.job_timeouts)
  check_raises('its first holder has lost it', Beaneater::NotFoundError) { job.delete }
  again.delete
end

def waiting(tube, other)
  waited = seconds do
    check_raises('reserve times out', Beaneater::TimedOutError) { tube.reserve(1) }
  end
  check('after a second', (0.9..), waited)

  waiter = Thread.new { other.reserve }
  Thread.pass until tube.stats.current_waiting == 1
  id = tube.put('for the waiter')[:id]
  job = waiter.value
  check('a waiting client gets the job', id, job.id)
  job.delete
end

def tubes(client)
  check('list-tubes', true, client.tubes.all.map(&:name).include?(TUBE))
  check('list-tube-used', TUBE, client.tubes.used.name)
  check('list-tubes-watched', [TUBE], client.tubes.watched.map(&:name))
  check_raises('the last watched tube stays', Beaneater::NotIgnoredError) do
    client.tubes.ignore(TUBE)
  end
  check_raises('a tube name has its alphabet', Beaneater::InvalidTubeName) do
    client.tubes.watch('no=such')
  end
end

def totals(client, tube)
  stats = client.stats
  check('stats counts puts', 6, stats.cmd_put)
  check('stats counts jobs', [6, 0, 0, 0, 0],
        [stats.total_jobs, stats.current_jobs_ready, stats.current_jobs_reserved,
         stats.current_jobs_delayed, stats.current_jobs_buried])
  check('stats counts connections', [2, 2, 1],
        [stats.current_connections, stats.current_workers, stats.current_producers])
  check('the version compares as a number', true, stats.version.to_s.to_f >= 1.0)
  check('stats-tube', [TUBE, 6, 6], [tube.stats.name, tube.stats.total_jobs, tube.stats.cmd_delete])
end

Timeout.timeout(600) do
  client = Beaneater.new(ADDRESS)
  tube = client.tubes[TUBE]
  other = Beaneater.new(ADDRESS).tubes[TUBE]
  work_on(tube, put_and_reserve(tube))
  order(tube)
  pause(tube)
  ttr(tube, other)
  waiting(tube, other)
  tubes(client)
  totals(client, tube)
end

abort "#{$failures} checks failed" if $failures.positive?
