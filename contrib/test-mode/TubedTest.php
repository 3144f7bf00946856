<?php
// A work-queue server for a test suite in PHP: tubed in test mode, with a clock that tests move.
//
//   class MailTest extends PHPUnit\Framework\TestCase
//   {
//       use TubedTestCase;
//
//       public function testADelayedMail(): void
//       {
//           $queue = Pheanstalk\Pheanstalk::create(self::tubed()->host, self::tubed()->port);
//           …
//           self::tubed()->advance(3600);
//       }
//   }
//
// Every test gets the same server with an empty queue. The server ends with this process, however
// it ends: it reads its standard input from a pipe that only this process has open. The program is
// $TUBED, or tubed on the PATH.
declare(strict_types=1);

// The server has refused a request of the test, or has ended.
final class TubedTestError extends RuntimeException
{
}

final class TubedTest
{
    private const REFUSALS = '/^(BAD_FORMAT|UNKNOWN_COMMAND|OUT_OF_MEMORY|NOT_FOUND|JOB_TOO_BIG)/';

    public string $host;
    public int $port;

    /** @var resource */
    private $process;
    /** @var resource[] */
    private array $pipes = [];

    // $clock: 'manual', 'auto' or 'real'; $flags: more flags of tubed.
    public function __construct(string $clock = 'manual', array $flags = [], ?string $program = null)
    {
        $program ??= getenv('TUBED') ?: 'tubed';
        $process = @proc_open([$program, "--test-mode=$clock", ...$flags], [['pipe', 'r'], ['pipe', 'w']], $this->pipes);
        $line = $process === false ? false : fgets($this->pipes[1]);
        if ($line === false) {
            throw new TubedTestError("cannot start $program: install tubed, or set TUBED to its path");
        }
        $this->process = $process;
        $colon = strrpos($line, ':');
        $this->host = substr($line, 0, $colon);
        $this->port = (int) substr($line, $colon + 1);
    }

    public function __destruct()
    {
        $this->stop();
    }

    // Sends one test verb or command and returns the line of the reply.
    public function control(string $command): string
    {
        $reply = $this->send($command);
        if (preg_match(self::REFUSALS, $reply) === 1) {
            throw new TubedTestError("$command: $reply");
        }
        return $reply;
    }

    // The same for a command whose reply is OK and a block. Returns the block.
    public function block(string $command): string
    {
        $reply = explode(' ', $this->send($command));
        if ($reply[0] !== 'OK') {
            throw new TubedTestError("$command: $reply[0]");
        }
        return substr(stream_get_contents($this->pipes[1], (int) $reply[1] + 1), 0, -1);
    }

    // Moves the clock; everything that was due has been done. Returns the seconds since its
    // beginning.
    public function advance(float $seconds): float
    {
        $milliseconds = (int) round($seconds * 1000);
        return (int) explode(' ', $this->control("test-advance {$milliseconds}ms"))[1] / 1000;
    }

    // Forgets all jobs, pauses, faults and events, and resets ids and the clock. A connection
    // that stays open uses and watches "default" again.
    public function reset(): void
    {
        $this->control('test-reset');
    }

    // Keeps the jobs under a name, and brings them back.
    public function snapshot(string $name): void
    {
        $this->control("test-snapshot $name");
    }

    public function restore(string $name): void
    {
        $this->control("test-restore $name");
    }

    // The next commands of this verb, or of 'any', are answered so: an error word, 'CLOSE' or
    // 'HANG'.
    public function fault(string $verb, string $reply, int $count = 1): void
    {
        $this->control("test-fault $verb $count $reply");
    }

    public function noFaults(): void
    {
        $this->control('test-fault off');
    }

    // The events since the last reset: ['put 1 mails', 'reserve 1 c1'].
    public function events(): array
    {
        $lines = array_slice(explode("\n", rtrim($this->block('test-events'))), 1);
        return preg_replace('/^- \d+ /', '', $lines);
    }

    // Waits, in real time, until `count` events of this word have happened since the last reset.
    // False: they have not.
    public function waitFor(string $event, int $count = 1, float $seconds = 5): bool
    {
        $milliseconds = (int) round($seconds * 1000);
        return str_starts_with($this->control("test-await $event $count $milliseconds"), 'AWAITED');
    }

    // All lines of test-dump, and those of the jobs, as arrays.
    public function dump(): array
    {
        $lines = explode("\n", rtrim($this->block('test-dump')));
        return array_map(fn (string $line) => json_decode($line, true, 512, JSON_THROW_ON_ERROR), $lines);
    }

    public function jobs(): array
    {
        return array_values(array_filter($this->dump(), fn (array $line) => isset($line['state'])));
    }

    // Ends the server.
    public function stop(): void
    {
        foreach ($this->pipes as $pipe) {
            fclose($pipe);
        }
        $this->pipes = [];
        if (isset($this->process)) {
            proc_close($this->process);
            unset($this->process);
        }
    }

    private function send(string $command): string
    {
        fwrite($this->pipes[0], "$command\n");
        $line = fgets($this->pipes[1]);
        if ($line === false) {
            throw new TubedTestError('tubed has ended; its message is on standard error');
        }
        return rtrim($line, "\n");
    }
}

// For a test case of PHPUnit: one server for all tests of the process, reset before each.
trait TubedTestCase
{
    private static ?TubedTest $tubed = null;

    protected static function tubed(): TubedTest
    {
        return self::$tubed ??= new TubedTest();
    }

    /** @before */
    public function resetTubed(): void
    {
        self::tubed()->reset();
    }
}
