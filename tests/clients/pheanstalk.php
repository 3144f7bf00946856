<?php
// Runs the PHP client pheanstalk against the server at TUBED_TEST_HOST:TUBED_TEST_PORT.
declare(strict_types=1);

// The location of Debian's php-pda-pheanstalk, below PHP's include path.
require 'Pheanstalk/autoload.php';

use Pheanstalk\Exception\DeadlineSoonException;
use Pheanstalk\Exception\JobNotFoundException;
use Pheanstalk\Exception\ServerException;
use Pheanstalk\Job;
use Pheanstalk\Pheanstalk;

const TUBE = 'client-pheanstalk';
const BODY = "line one\r\n\0line two";

$failures = 0;

// A PHP warning (a reply that the client did not expect) is a failure. A deprecation that a newer
// PHP reports in the client is not.
set_error_handler(function (int $level, string $message, string $file, int $line): bool {
    throw new ErrorException($message, 0, $level, $file, $line);
}, E_ALL & ~E_DEPRECATED);

function check(string $what, $expected, $actual): void
{
    global $failures;
    if ($expected === $actual) {
        echo "ok    $what\n";
        return;
    }
    ++$failures;
    echo "FAIL  $what: expected ", json_encode($expected), ', got ', json_encode($actual), "\n";
}

function checkBetween(string $what, float $low, float $high, float $actual): void
{
    check("$what (between $low and $high)", true, $low <= $actual && $actual <= $high);
}

function checkThrows(string $what, string $class, callable $action): void
{
    try {
        $action();
        check($what, $class, null);
    } catch (Exception $error) {
        check($what, $class, get_class($error));
    }
}

/** This client splits the YAML of stats at the colon and would leave quotes on; names have none. */
function values(iterable $stats, string ...$keys): array
{
    return array_map(fn ($key) => $stats[$key], $keys);
}

function jobValues(Pheanstalk $client, Job $job, string ...$keys): array
{
    return values($client->statsJob($job), ...$keys);
}

function putAndReserve(Pheanstalk $client): Job
{
    $put = $client->put(BODY, 7, 0, 30);
    check('put gives an id', true, $put->getId() > 0);
    check('stats-job of a ready job', [(string) $put->getId(), TUBE, 'ready', '7', '0', '30'],
        jobValues($client, $put, 'id', 'tube', 'state', 'pri', 'delay', 'ttr'));
    check('peek-ready', $put->getId(), $client->peekReady()->getId());
    check('peek gives the body', BODY, $client->peek($put)->getData());
    $job = $client->reserve();
    check('reserve gives the job', [$put->getId(), BODY], [$job->getId(), $job->getData()]);
    check('it is reserved once', ['reserved', '1'],
        jobValues($client, $job, 'state', 'reserves'));
    checkBetween('time-left', 1, 30, (float) $client->statsJob($job)['time-left']);
    return $job;
}

function workOn(Pheanstalk $client, Job $job): void
{
    $client->touch($job);
    check('touch is counted', '1', $client->stats()['cmd-touch']);
    $client->release($job, 5, 0);
    check('release is counted', ['ready', '5', '1'],
        jobValues($client, $job, 'state', 'pri', 'releases'));

    $job = $client->reserveWithTimeout(5);
    $client->bury($job, 4);
    check('bury is counted', ['buried', '4', '1'],
        jobValues($client, $job, 'state', 'pri', 'buries'));
    check('stats-tube counts the buried job', '1', $client->statsTube(TUBE)->current_jobs_buried);
    check('peek-buried', $job->getId(), $client->peekBuried()->getId());
    check('kick moves one', 1, $client->kick(10));
    check('kick is counted', ['ready', '1'], jobValues($client, $job, 'state', 'kicks'));

    $job = $client->reserveWithTimeout(5);
    $client->release($job, 4, 60);
    check('release with a delay', ['delayed', '60'], jobValues($client, $job, 'state', 'delay'));
    check('peek-delayed', $job->getId(), $client->peekDelayed()->getId());
    $client->kickJob($job);
    check('kick-job', ['ready'], jobValues($client, $job, 'state'));

    $job = $client->reserveWithTimeout(5);
    $client->delete($job);
    checkThrows('the job is gone', ServerException::class, fn () => $client->statsJob($job));
    checkThrows('a second delete', JobNotFoundException::class, fn () => $client->delete($job));
    checkThrows('a late touch', JobNotFoundException::class, fn () => $client->touch($job));
    check('peek of nothing', null, $client->peekReady());
}

function order(Pheanstalk $client): void
{
    $late = $client->put('late', 20);
    $soon = $client->put('soon', 10);
    foreach (['first' => $soon, 'second' => $late] as $place => $expected) {
        $job = $client->reserveWithTimeout(5);
        check("by priority, $place", $expected->getId(), $job->getId());
        $client->delete($job);
    }
}

function pause(Pheanstalk $client): void
{
    $client->put('paused');
    $client->pauseTube(TUBE, 60);
    check('a paused tube gives nothing', null, $client->reserveWithTimeout(0));
    $stats = $client->statsTube(TUBE);
    check('stats-tube shows the pause', ['60', '1'], values($stats, 'pause', 'cmd-pause-tube'));
    checkBetween('pause-time-left', 1, 60, (float) $stats['pause-time-left']);
    $client->resumeTube(TUBE);
    $client->delete($client->reserveWithTimeout(5));
    checkThrows('pause of no tube', ServerException::class,
        fn () => $client->pauseTube('no-such-tube', 1));
}

function ttr(Pheanstalk $client, Pheanstalk $other): void
{
    $client->put('slow', 10, 0, 10);
    $start = microtime(true);
    $job = $client->reserveWithTimeout(5);
    checkThrows('DEADLINE_SOON in the last second', DeadlineSoonException::class,
        fn () => $client->reserveWithTimeout(600));
    $again = $other->reserveWithTimeout(600);
    checkBetween('the job comes back after its TTR', 9.5, INF, microtime(true) - $start);
    check('it is the same job', $job->getId(), $again->getId());
    check('the timeout is counted', ['1', '2'],
        jobValues($other, $again, 'timeouts', 'reserves'));
    check('in stats too', '1', $client->stats()['job-timeouts']);
    checkThrows('its first holder has lost it', JobNotFoundException::class,
        fn () => $client->delete($job));
    $other->delete($again);
}

function waiting(Pheanstalk $client): void
{
    $start = microtime(true);
    check('reserve times out', null, $client->reserveWithTimeout(1));
    checkBetween('after a second', 0.9, INF, microtime(true) - $start);
}

function tubes(Pheanstalk $client): void
{
    check('list-tubes', true, in_array(TUBE, $client->listTubes(), true));
    check('list-tube-used', TUBE, $client->listTubeUsed(true));
    check('list-tubes-watched', [TUBE], $client->listTubesWatched(true));
}

function totals(Pheanstalk $client): void
{
    $stats = $client->stats();
    check('stats counts puts and jobs', ['5', '5', '0', '0', '0', '0'],
        values($stats, 'cmd-put', 'total-jobs', 'current-jobs-ready', 'current-jobs-reserved',
            'current-jobs-delayed', 'current-jobs-buried'));
    check('stats counts connections', ['2', '2', '1'],
        values($stats, 'current-connections', 'current-workers', 'current-producers'));
    check('the version compares as a number', true,
        version_compare(values($stats, 'version')[0], '1.0', '>='));
    check('stats-tube', [TUBE, '5', '5'],
        values($client->statsTube(TUBE), 'name', 'total-jobs', 'cmd-delete'));
}

function connect(): Pheanstalk
{
    $client = Pheanstalk::create(getenv('TUBED_TEST_HOST'), (int) getenv('TUBED_TEST_PORT'));
    return $client->useTube(TUBE)->watchOnly(TUBE);
}

pcntl_alarm(600); // SIGALRM ends this process
$client = connect();
$other = connect();
workOn($client, putAndReserve($client));
order($client);
pause($client);
ttr($client, $other);
waiting($client);
tubes($client);
totals($client);

if ($failures > 0) {
    fwrite(STDERR, "$failures checks failed\n");
    exit(1);
}
