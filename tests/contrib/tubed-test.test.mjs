// contrib/test-mode/tubed-test.mjs with jackd, whose package is in TUBED_TEST_NPM_DIR.
import { deepStrictEqual, rejects, strictEqual } from 'node:assert'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { startTubed } from '../../contrib/test-mode/tubed-test.mjs'

const { default: Jackd } = await import(
  createRequire(join(process.env.TUBED_TEST_NPM_DIR, 'package.json')).resolve('jackd')
)

let tubed
let queue
before(async () => { tubed = await startTubed() })
beforeEach(async () => { queue = new Jackd(); await queue.connect(tubed) })
afterEach(async () => { await queue.quit(); await tubed.reset() })
after(() => tubed.stop())

test('a delayed job is ready after its delay', async () => {
  await queue.put('hello', { delay: 3600 })
  strictEqual(await tubed.advance(3599.5), 3599.5)
  await rejects(queue.reserveWithTimeout(0), /TIMED_OUT/)
  await tubed.advance(0.5)
  const job = await queue.reserveWithTimeout(0)
  strictEqual(job.payload.toString(), 'hello')
  await queue.delete(job.id)
  deepStrictEqual(await tubed.events(), ['put 1 default', 'timed-out c1', 'reserve 1 c1', 'delete 1'])
})

test('each test begins with an empty queue', async () => {
  deepStrictEqual(await tubed.jobs(), [])
  strictEqual(await queue.put('hello'), '1')
  const [job] = await tubed.jobs()
  deepStrictEqual([job.id, job.state, job.body], [1, 'ready', 'hello'])
})

test('faults', async () => {
  await tubed.fault('put', 'OUT_OF_MEMORY')
  await rejects(queue.put('hello'), /OUT_OF_MEMORY/)
  strictEqual(await queue.put('hello'), '1')
  await tubed.fault('any', 'CLOSE', 5)
  await tubed.noFaults()
  await queue.delete('1')
  await rejects(tubed.fault('put', 'INSERTED'), /BAD_FORMAT/)
})

test('snapshots', async () => {
  await queue.put('hello')
  await tubed.snapshot('base')
  await queue.delete('1')
  await tubed.restore('base')
  strictEqual((await tubed.jobs()).length, 1)
})

test('events can be waited for', async () => {
  strictEqual(await tubed.waitFor('put', { seconds: 0.01 }), false)
  const waiting = tubed.waitFor('put')
  await queue.put('hello')
  strictEqual(await waiting, true)
})

test('a missing program is named', async () => {
  await rejects(startTubed({ program: '/nonexistent/tubed' }), /\/nonexistent\/tubed/)
})

test('the server ends when the test process is killed', async () => {
  const helper = fileURLToPath(new URL('../../contrib/test-mode/tubed-test.mjs', import.meta.url))
  const script = `import(${JSON.stringify(helper)}).then(async m => {
    const t = await m.startTubed(); console.log(t.port); setInterval(() => {}, 1000) })`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise(resolve => child.stdout.once('data', data => resolve(Number(data))))
  const connection = connect(port, '127.0.0.1')
  await new Promise(resolve => connection.once('connect', resolve))
  child.kill('SIGKILL')
  await new Promise(resolve => { connection.once('close', resolve).on('error', () => {}).resume() })
})
