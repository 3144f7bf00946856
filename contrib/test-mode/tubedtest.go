// Package tubedtest starts a work-queue server for a test suite in Go: tubed in test mode, with a
// clock that the test moves.
//
//	func TestDelayedMail(t *testing.T) {
//		tubed := tubedtest.Start(t)
//		queue, err := beanstalk.Dial("tcp", tubed.Addr)
//		…
//		tubed.Advance(time.Hour)
//	}
//
// The server ends with the test, and with this process, however it ends: it reads its standard
// input from a pipe that only this process has open. The program is $TUBED, or tubed on the PATH.
package tubedtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a server in test mode. Its methods fail the test that has started it.
type Server struct {
	Addr string // as net.Dial takes it: "127.0.0.1:37797"

	t      testing.TB
	mutex  sync.Mutex
	input  io.WriteCloser
	output *bufio.Reader
}

// Start starts a server that ends with the test. The flags are those of tubed; "--test-mode=auto"
// and "--test-mode=real" choose another clock.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	program := os.Getenv("TUBED")
	if program == "" {
		program = "tubed"
	}
	command := exec.Command(program, append([]string{"--test-mode"}, flags...)...)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start %s: %v: install tubed, or set TUBED to its path", program, err)
	}
	server := &Server{t: t, input: input, output: bufio.NewReader(output)}
	server.Addr = server.line()
	t.Cleanup(func() {
		input.Close()
		command.Wait()
	})
	return server
}

func (s *Server) line() string {
	s.t.Helper()
	line, err := s.output.ReadString('\n')
	if err != nil {
		s.t.Fatal("tubed has ended; its message is on standard error")
	}
	return strings.TrimSuffix(line, "\n")
}

func (s *Server) send(command string) string {
	s.t.Helper()
	fmt.Fprintln(s.input, command)
	return s.line()
}

// Control sends one test verb or command and returns the line of the reply.
func (s *Server) Control(command string) string {
	s.t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	reply := s.send(command)
	switch strings.SplitN(reply, " ", 2)[0] {
	case "BAD_FORMAT", "UNKNOWN_COMMAND", "OUT_OF_MEMORY", "NOT_FOUND", "JOB_TOO_BIG":
		s.t.Fatalf("%s: %s", command, reply)
	}
	return reply
}

// Block does the same for a command whose reply is OK and a block, and returns the block.
func (s *Server) Block(command string) string {
	s.t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	reply := strings.Fields(s.send(command))
	if len(reply) != 2 || reply[0] != "OK" {
		s.t.Fatalf("%s: %s", command, strings.Join(reply, " "))
	}
	size, _ := strconv.Atoi(reply[1])
	block := make([]byte, size+1)
	if _, err := io.ReadFull(s.output, block); err != nil {
		s.t.Fatal(err)
	}
	return string(block[:size])
}

// Advance moves the clock; everything that was due has been done. It returns the time since the
// clock's beginning.
func (s *Server) Advance(by time.Duration) time.Duration {
	s.t.Helper()
	reply := s.Control(fmt.Sprintf("test-advance %dms", by.Milliseconds()))
	now, _ := strconv.ParseInt(strings.Fields(reply)[1], 10, 64)
	return time.Duration(now) * time.Millisecond
}

// Reset forgets all jobs, pauses, faults and events, and resets ids and the clock. A
// connection that stays open uses and watches "default" again.
func (s *Server) Reset() {
	s.t.Helper()
	s.Control("test-reset")
}

// Snapshot keeps the jobs under a name, for Restore.
func (s *Server) Snapshot(name string) {
	s.t.Helper()
	s.Control("test-snapshot " + name)
}

// Restore brings the jobs of a snapshot back.
func (s *Server) Restore(name string) {
	s.t.Helper()
	s.Control("test-restore " + name)
}

// Fault lets the next count commands of this verb, or of "any", be answered so: an error word,
// "CLOSE" or "HANG".
func (s *Server) Fault(verb string, count int, reply string) {
	s.t.Helper()
	s.Control(fmt.Sprintf("test-fault %s %d %s", verb, count, reply))
}

// NoFaults removes all faults.
func (s *Server) NoFaults() {
	s.t.Helper()
	s.Control("test-fault off")
}

// Events returns what has happened since the last reset: "put 1 mails", "reserve 1 c1".
func (s *Server) Events() []string {
	s.t.Helper()
	var events []string
	for _, line := range strings.Split(s.Block("test-events"), "\n") {
		if words := strings.SplitN(line, " ", 3); len(words) == 3 {
			events = append(events, words[2])
		}
	}
	return events
}

// WaitFor waits, in real time, until `count` events of this word have happened since the last
// reset. False: they have not.
func (s *Server) WaitFor(event string, count int, limit time.Duration) bool {
	s.t.Helper()
	reply := s.Control(fmt.Sprintf("test-await %s %d %d", event, count, limit.Milliseconds()))
	return strings.HasPrefix(reply, "AWAITED")
}

// Jobs returns the jobs as test-dump shows them: "id", "tube", "state", "body" and more.
func (s *Server) Jobs() []map[string]any {
	s.t.Helper()
	var jobs []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(s.Block("test-dump")), "\n") {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			s.t.Fatal(err)
		}
		if _, ok := object["state"]; ok {
			jobs = append(jobs, object)
		}
	}
	return jobs
}
