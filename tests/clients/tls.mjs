// Node's tls module against the server at TUBED_TEST_HOST:TUBED_TEST_PORT: puts and reserves,
// bodies of many sizes, resumed sessions, and a server that the client does not trust.
import { deepStrictEqual, ok, rejects } from 'node:assert'
import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'

const host = process.env.TUBED_TEST_HOST
const port = Number(process.env.TUBED_TEST_PORT)
const ca = readFileSync(process.env.TUBED_TEST_CA)

class Client {
  static async open(options = {}) {
    const client = new Client()
    client.input = Buffer.alloc(0)
    client.socket = connect({ host, port, ca, servername: 'localhost', ALPNProtocols: ['beanstalk'],
      ...options })
    client.socket.on('data', data => {
      client.input = Buffer.concat([client.input, data])
      client.wake?.()
    })
    client.socket.on('end', () => { client.ended = true; client.wake?.() })
    await new Promise((resolve, reject) => {
      client.socket.once('secureConnect', resolve)
      client.socket.once('error', reject)
    })
    return client
  }

  async until(condition) {
    while (!condition()) {
      ok(!this.ended, `the stream ended after ${this.input.subarray(0, 100)}`)
      await new Promise(resolve => { this.wake = resolve })
    }
  }

  async read(count) {
    await this.until(() => this.input.length >= count)
    const data = this.input.subarray(0, count)
    this.input = this.input.subarray(count)
    return data
  }

  async line() {
    await this.until(() => this.input.includes('\r\n'))
    const data = await this.read(this.input.indexOf('\r\n') + 2)
    return data.subarray(0, -2).toString()
  }

  async put(body) {
    this.socket.write(Buffer.concat([Buffer.from(`put 0 0 60 ${body.length}\r\n`), body,
      Buffer.from('\r\n')]))
    const [word, id] = (await this.line()).split(' ')
    deepStrictEqual(word, 'INSERTED')
    return Number(id)
  }

  async reserve() {
    this.socket.write('reserve\r\n')
    const [word, id, bytes] = (await this.line()).split(' ')
    deepStrictEqual(word, 'RESERVED')
    const body = await this.read(Number(bytes) + 2)
    return [Number(id), body.subarray(0, -2)]
  }

  async ask(command) {
    this.socket.write(`${command}\r\n`)
    return this.line()
  }
}

const producer = await Client.open()
deepStrictEqual(producer.socket.getProtocol(), 'TLSv1.3')
deepStrictEqual(producer.socket.alpnProtocol, 'beanstalk')
const worker = await Client.open({ maxVersion: 'TLSv1.2' })
deepStrictEqual(worker.socket.getProtocol(), 'TLSv1.2')

for (const size of [0, 1, 100, 16_383, 16_384, 16_385, 65_535]) {
  const body = Buffer.from(Array.from({ length: size }, (_, at) => (at * 31) % 256))
  const id = await producer.put(body)
  deepStrictEqual(await worker.reserve(), [id, body])
  deepStrictEqual(await worker.ask(`delete ${id}`), 'DELETED')
}
console.log('ok    puts and reserves')

const waiting = worker.reserve()
const id = await producer.put(Buffer.from('later'))
deepStrictEqual(await waiting, [id, Buffer.from('later')])
console.log('ok    a reserve that waits')

// The end of the output: Node sends close_notify and closes its side of the socket.
worker.socket.write('reserve\r\nlist-tube-used\r\n')
worker.socket.end()
deepStrictEqual(await worker.line(), 'TIMED_OUT')
deepStrictEqual(await worker.line(), 'USING default')
deepStrictEqual((await producer.reserve())[0], id)
console.log('ok    a half-close ends a wait, and gives jobs back')

let session
const first = await Client.open()
first.socket.on('session', ticket => { session = ticket })
await first.ask('list-tube-used')
first.socket.end()
ok(session !== undefined)
const resumed = await Client.open({ session })
deepStrictEqual(await resumed.ask('list-tube-used'), 'USING default')
ok(resumed.socket.isSessionReused())
resumed.socket.end()
console.log('ok    a session is resumed')

await rejects(Client.open({ ca: [] }), { code: /UNABLE_TO_|SELF_SIGNED/ })
await rejects(Client.open({ servername: 'other.example' }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
await rejects(Client.open({ ALPNProtocols: ['h2'] }))
producer.socket.end()
console.log('ok    servers that are not trusted')
