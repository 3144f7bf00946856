<?php
// contrib/test-mode/TubedTest.php with PHPUnit and pheanstalk.
declare(strict_types=1);

require_once __DIR__ . '/../../contrib/test-mode/TubedTest.php';
require_once 'Pheanstalk/autoload.php';

use Pheanstalk\Pheanstalk;

final class TubedTestTest extends PHPUnit\Framework\TestCase
{
    use TubedTestCase;

    private Pheanstalk $queue;

    protected function setUp(): void
    {
        $this->queue = Pheanstalk::create(self::tubed()->host, self::tubed()->port);
        $this->queue->useTube('mails');
        $this->queue->watch('mails');
    }

    public function testADelayedJobIsReadyAfterItsDelay(): void
    {
        $this->queue->put('hello', 1024, 3600, 60);
        $this->assertSame(3599.5, self::tubed()->advance(3599.5));
        $this->assertNull($this->queue->reserveWithTimeout(0));
        self::tubed()->advance(0.5);
        $job = $this->queue->reserveWithTimeout(0);
        $this->assertSame('hello', $job->getData());
        $this->queue->delete($job);
        $this->assertContains('put 1 mails', self::tubed()->events());
        $this->assertContains('delete 1', self::tubed()->events());
    }

    public function testEachTestBeginsWithAnEmptyQueue(): void
    {
        $this->assertSame([], self::tubed()->jobs());
        $this->assertSame(1, (int) $this->queue->put('hello')->getId());
        $this->assertSame(['ready', 'hello'], [self::tubed()->jobs()[0]['state'], self::tubed()->jobs()[0]['body']]);
    }

    public function testFaults(): void
    {
        self::tubed()->fault('put', 'OUT_OF_MEMORY');
        try {
            $this->queue->put('hello');
            $this->fail('the put was accepted');
        } catch (\Pheanstalk\Exception\ServerOutOfMemoryException $exception) {
            $this->assertStringContainsString('OUT_OF_MEMORY', $exception->getMessage());
        }
        $this->assertSame(1, (int) $this->queue->put('hello')->getId());
        self::tubed()->fault('any', 'CLOSE', 5);
        self::tubed()->noFaults();
        $this->assertSame('mails', $this->queue->listTubeUsed());
        $this->expectException(TubedTestError::class);
        self::tubed()->fault('put', 'INSERTED');
    }

    public function testSnapshots(): void
    {
        $this->queue->put('hello');
        self::tubed()->snapshot('base');
        $this->queue->delete($this->queue->peekReady());
        self::tubed()->restore('base');
        $this->assertCount(1, self::tubed()->jobs());
    }

    public function testEventsCanBeWaitedFor(): void
    {
        $this->assertFalse(self::tubed()->waitFor('put', 1, 0.01));
        $this->queue->put('hello');
        $this->assertTrue(self::tubed()->waitFor('put'));
    }

    public function testAMissingProgramIsNamed(): void
    {
        $this->expectException(TubedTestError::class);
        $this->expectExceptionMessage('/nonexistent/tubed');
        new TubedTest('manual', [], '/nonexistent/tubed');
    }

    public function testTheServerEndsWhenTheTestProcessIsKilled(): void
    {
        $script = 'require ' . var_export(__DIR__ . '/../../contrib/test-mode/TubedTest.php', true) . ';'
            . '$t = new TubedTest(); echo $t->port, "\n"; sleep(600);';
        $child = proc_open([PHP_BINARY, '-r', $script], [1 => ['pipe', 'w']], $pipes);
        $connection = stream_socket_client('tcp://127.0.0.1:' . trim(fgets($pipes[1])));
        proc_terminate($child, 9);
        stream_set_timeout($connection, 600);
        $this->assertFalse(fgets($connection));
        $this->assertFalse(stream_get_meta_data($connection)['timed_out']);
        fclose($pipes[1]);
        proc_close($child);
    }
}
