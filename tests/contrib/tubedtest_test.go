// contrib/test-mode/tubedtest.go, and a socket in place of a client.
package tubedtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

type client struct {
	net.Conn
	reader *bufio.Reader
	t      *testing.T
}

func connect(t *testing.T, address string) *client {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return &client{connection, bufio.NewReader(connection), t}
}

// expect sends lines and compares the first line of the reply.
func (c *client) expect(text, reply string) {
	c.t.Helper()
	fmt.Fprint(c, strings.ReplaceAll(text, "\n", "\r\n")+"\r\n")
	line, err := c.reader.ReadString('\n')
	if err != nil || strings.TrimSuffix(line, "\r\n") != reply {
		c.t.Fatalf("%q: %q (%v) instead of %q", text, line, err, reply)
	}
	if strings.HasPrefix(reply, "RESERVED") {
		c.reader.ReadString('\n')
	}
}

func TestDelayedJobIsReadyAfterItsDelay(t *testing.T) {
	tubed := Start(t)
	queue := connect(t, tubed.Addr)
	queue.expect("put 0 3600 60 5\nhello", "INSERTED 1")
	if now := tubed.Advance(3599500 * time.Millisecond); now != 3599500*time.Millisecond {
		t.Fatal(now)
	}
	queue.expect("reserve-with-timeout 0", "TIMED_OUT")
	tubed.Advance(500 * time.Millisecond)
	queue.expect("reserve-with-timeout 0", "RESERVED 1 5")
	queue.expect("delete 1", "DELETED")
	want := []string{"put 1 default", "timed-out c1", "reserve 1 c1", "delete 1"}
	if events := tubed.Events(); !reflect.DeepEqual(events, want) {
		t.Fatal(events)
	}
}

func TestResetEmptiesTheQueue(t *testing.T) {
	tubed := Start(t)
	queue := connect(t, tubed.Addr)
	for i := 0; i < 2; i++ {
		if jobs := tubed.Jobs(); len(jobs) != 0 {
			t.Fatal(jobs)
		}
		queue.expect("put 0 0 60 5\nhello", "INSERTED 1")
		if jobs := tubed.Jobs(); len(jobs) != 1 || jobs[0]["body"] != "hello" {
			t.Fatal(jobs)
		}
		tubed.Reset()
	}
}

func TestFaultsAndSnapshots(t *testing.T) {
	tubed := Start(t)
	queue := connect(t, tubed.Addr)
	tubed.Fault("put", 1, "OUT_OF_MEMORY")
	queue.expect("put 0 0 60 1\nx", "OUT_OF_MEMORY")
	queue.expect("put 0 0 60 1\nx", "INSERTED 1")
	tubed.Fault("any", 5, "CLOSE")
	tubed.NoFaults()
	tubed.Snapshot("base")
	queue.expect("delete 1", "DELETED")
	tubed.Restore("base")
	queue.expect("delete 1", "DELETED")
}

func TestEventsCanBeWaitedFor(t *testing.T) {
	tubed := Start(t)
	queue := connect(t, tubed.Addr)
	if tubed.WaitFor("put", 1, 10*time.Millisecond) {
		t.Fatal("there was no put")
	}
	queue.expect("put 0 0 60 1\nx", "INSERTED 1")
	if !tubed.WaitFor("put", 1, 5*time.Second) {
		t.Fatal("there was a put")
	}
}

// TestChild is the test process that TestServerEndsWhenTheTestProcessIsKilled kills.
func TestChild(t *testing.T) {
	if os.Getenv("TUBED_TEST_CHILD") == "" {
		return
	}
	fmt.Println("address", Start(t).Addr)
	time.Sleep(10 * time.Minute)
}

func TestServerEndsWhenTheTestProcessIsKilled(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	child.Env = append(os.Environ(), "TUBED_TEST_CHILD=1")
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var address string
	for lines := bufio.NewScanner(output); address == "" && lines.Scan(); {
		address = strings.TrimPrefix(lines.Text(), "address ")
		if address == lines.Text() {
			address = ""
		}
	}
	connection := connect(t, address)
	child.Process.Kill()
	child.Wait()
	connection.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := connection.reader.ReadByte(); err != io.EOF {
		t.Fatal(err)
	}
}
