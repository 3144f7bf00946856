// A work-queue server for a test suite in Node: tubed in test mode, with a clock that tests move.
//
//   import { startTubed } from './tubed-test.mjs'
//   const tubed = await startTubed()
//   const queue = new Jackd(); await queue.connect(tubed)   // tubed.host, tubed.port
//   afterEach(() => tubed.reset())
//   after(() => tubed.stop())
//   // in a test: await tubed.advance(3600)
//
// The server ends with this process, however it ends: it reads its standard input from a pipe that
// only this process has open. The program is $TUBED, or tubed on the PATH.
import { spawn } from 'node:child_process'

const REFUSALS = /^(BAD_FORMAT|UNKNOWN_COMMAND|OUT_OF_MEMORY|NOT_FOUND|JOB_TOO_BIG)/

// Starts a server and resolves when it listens. `clock`: 'manual', 'auto' or 'real'; `flags`: more
// flags of tubed.
export async function startTubed({ clock = 'manual', flags = [], program = process.env.TUBED ?? 'tubed' } = {}) {
  const server = spawn(program, [`--test-mode=${clock}`, ...flags], { stdio: ['pipe', 'pipe', 'inherit'] })
  const tubed = new Tubed(server)
  const line = await tubed.reply()
  const colon = line.lastIndexOf(':')
  tubed.host = line.slice(0, colon)
  tubed.port = Number(line.slice(colon + 1))
  return tubed
}

class Tubed {
  #server
  #input = Buffer.alloc(0)
  #waiting = [] // { resolve, reject, take } in the order of the requests
  #failure = null

  constructor(server) {
    this.#server = server
    server.stdout.on('data', data => {
      this.#input = Buffer.concat([this.#input, data])
      this.#answer()
    })
    server.on('error', error => this.#fail(error.code === 'ENOENT'
      ? `there is no program ${server.spawnfile}: install tubed, or set TUBED to its path`
      : error.message))
    server.on('exit', () => this.#fail('tubed has ended; its message is on standard error'))
    server.stdin.on('error', () => {}) // 'exit' follows
    // A server that is not stopped does not keep this process alive.
    server.unref()
    for (const stream of [server.stdin, server.stdout]) stream.unref?.()
  }

  // The next reply, as `take` cuts it from the input; by default a line.
  reply(take = takeLine) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject, take })
      this.#server.stdout.ref?.()
      this.#failure === null ? this.#answer() : this.#fail(this.#failure)
    })
  }

  #answer() {
    while (this.#waiting.length > 0) {
      const taken = this.#waiting[0].take(this.#input)
      if (taken === null) return
      this.#input = this.#input.subarray(taken.bytes)
      this.#waiting.shift().resolve(taken.value)
    }
    this.#server.stdout.unref?.()
  }

  #fail(reason) {
    this.#failure = reason
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(reason))
  }

  // Sends one test verb or command and resolves to the line of the reply.
  async control(command) {
    this.#server.stdin.write(`${command}\n`)
    const reply = await this.reply()
    if (REFUSALS.test(reply)) throw new Error(`${command}: ${reply}`)
    return reply
  }

  // The same for a command whose reply is OK and a block. Resolves to the block.
  async block(command) {
    this.#server.stdin.write(`${command}\n`)
    const reply = await this.reply(takeBlock)
    if (reply.word !== 'OK') throw new Error(`${command}: ${reply.word}`)
    return reply.body
  }

  // Moves the clock; everything that was due has been done. Resolves to the seconds since its
  // beginning.
  async advance(seconds) {
    const reply = await this.control(`test-advance ${Math.round(seconds * 1000)}ms`)
    return Number(reply.split(' ')[1]) / 1000
  }

  // Forgets all jobs, pauses, faults and events, and resets ids and the clock. A connection
  // that stays open uses and watches "default" again.
  async reset() { await this.control('test-reset') }

  // Keeps the jobs under a name, and brings them back.
  async snapshot(name) { await this.control(`test-snapshot ${name}`) }
  async restore(name) { await this.control(`test-restore ${name}`) }

  // The next commands of this verb, or of 'any', are answered so: an error word, 'CLOSE' or 'HANG'.
  async fault(verb, reply, count = 1) { await this.control(`test-fault ${verb} ${count} ${reply}`) }
  async noFaults() { await this.control('test-fault off') }

  // The events since the last reset: ['put 1 mails', 'reserve 1 c1'].
  async events() {
    const lines = (await this.block('test-events')).trimEnd().split('\n').slice(1)
    return lines.map(line => line.replace(/^- \d+ /, ''))
  }

  // Waits, in real time, until `count` events of this word have happened since the last reset.
  // False: they have not.
  async waitFor(event, { count = 1, seconds = 5 } = {}) {
    const reply = await this.control(`test-await ${event} ${count} ${Math.round(seconds * 1000)}`)
    return reply.startsWith('AWAITED')
  }

  // All lines of test-dump, and those of the jobs, as objects.
  async dump() { return (await this.block('test-dump')).trimEnd().split('\n').map(line => JSON.parse(line)) }
  async jobs() { return (await this.dump()).filter(line => 'state' in line) }

  // Ends the server.
  stop() {
    return new Promise(resolve => {
      if (this.#failure !== null) return resolve()
      this.#server.ref()
      this.#server.once('exit', () => resolve())
      this.#server.stdin.end()
    })
  }
}

function takeLine(input) {
  const end = input.indexOf('\n')
  return end < 0 ? null : { bytes: end + 1, value: input.toString('utf8', 0, end) }
}

function takeBlock(input) {
  const line = takeLine(input)
  if (line === null) return null
  const [word, size] = line.value.split(' ')
  if (word !== 'OK') return { bytes: line.bytes, value: { word } }
  const end = line.bytes + Number(size)
  if (input.length <= end) return null
  return { bytes: end + 1, value: { word, body: input.toString('utf8', line.bytes, end) } }
}
