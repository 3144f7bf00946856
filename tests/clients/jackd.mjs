// Runs the Node client jackd against the server at TUBED_TEST_HOST:TUBED_TEST_PORT. The package is
// in TUBED_TEST_NPM_DIR, outside the source tree.
//
// Not tested: pause-tube, which jackd 2.2.2 sends without a line end, so no server answers; and
// pipelining, because jackd takes all input that arrives with a body for the body.
import { deepStrictEqual } from 'node:assert'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const { default: Jackd } = await import(
  createRequire(join(process.env.TUBED_TEST_NPM_DIR, 'package.json')).resolve('jackd')
)

const TUBE = 'client-jackd'
const BODY = Buffer.from('line one\r\n\0line two')
let failures = 0

function check(what, expected, actual) {
  try {
    deepStrictEqual(actual, expected)
    console.log(`ok    ${what}`)
  } catch {
    failures += 1
    const [wanted, got] = [expected, actual].map(value => JSON.stringify(value))
    console.log(`FAIL  ${what}: expected ${wanted}, got ${got}`)
  }
}

function checkBetween(what, low, high, actual) {
  check(`${what} (between ${low} and ${high})`, true, low <= actual && actual <= high)
}

async function checkRejects(what, reply, promise) {
  check(what, reply, await promise.then(() => 'no error', error => error.message))
}

// jackd returns the YAML of stats and lists as text.
function parse(yaml) {
  const lines = yaml.split('\n').filter(line => line !== '' && line !== '---')
  return Object.fromEntries(lines.map(line => {
    const [key, value] = line.split(/: (.*)/)
    return [key, value.replace(/^"(.*)"$/, '$1')]
  }))
}

function parseList(yaml) {
  return yaml.split('\n').filter(line => line.startsWith('- ')).map(line => line.slice(2))
}

const pick = (stats, ...keys) => keys.map(key => stats[key])

async function jobValues(client, id, ...keys) {
  return pick(parse(await client.statsJob(id)), ...keys)
}

async function putAndReserve(client) {
  const id = await client.put(BODY.toString(), { priority: 7, ttr: 30 })
  check('put gives an id', true, Number(id) > 0)
  check('stats-job of a ready job', [id, TUBE, 'ready', '7', '0', '30'],
    await jobValues(client, id, 'id', 'tube', 'state', 'pri', 'delay', 'ttr'))
  check('peek-ready', { id, payload: BODY }, await client.peekReady())
  check('peek gives the body', { id, payload: BODY }, await client.peek(id))
  check('reserve gives the job', { id, payload: BODY }, await client.reserve())
  check('it is reserved once', ['reserved', '1'],
    await jobValues(client, id, 'state', 'reserves'))
  checkBetween('time-left', 1, 30, Number(await jobValues(client, id, 'time-left')))
  return id
}

async function workOn(client, id) {
  await client.touch(id)
  check('touch is counted', ['1'], pick(parse(await client.stats()), 'cmd-touch'))
  await client.release(id, { priority: 5 })
  check('release is counted', ['ready', '5', '1'],
    await jobValues(client, id, 'state', 'pri', 'releases'))

  await client.reserveWithTimeout(5)
  await client.bury(id, 4)
  check('bury is counted', ['buried', '4', '1'],
    await jobValues(client, id, 'state', 'pri', 'buries'))
  check('stats-tube counts the buried job', ['1'],
    pick(parse(await client.statsTube(TUBE)), 'current-jobs-buried'))
  check('peek-buried', id, (await client.peekBuried()).id)
  check('kick moves one', 1, await client.kick(10))
  check('kick is counted', ['ready', '1'], await jobValues(client, id, 'state', 'kicks'))

  check('reserve-job gives the job', { id, payload: BODY }, await client.reserveJob(id))
  await checkRejects('but once', 'NOT_FOUND', client.reserveJob(id))
  await client.release(id, { priority: 4, delay: 60 })
  check('release with a delay', ['delayed', '60'], await jobValues(client, id, 'state', 'delay'))
  check('peek-delayed', id, (await client.peekDelayed()).id)
  await client.kickJob(id)
  check('kick-job', ['ready'], await jobValues(client, id, 'state'))

  await client.reserveWithTimeout(5)
  await client.delete(id)
  await checkRejects('a second delete', 'NOT_FOUND', client.delete(id))
  await checkRejects('peek of nothing', 'NOT_FOUND', client.peek(id))
}

async function order(client) {
  const late = await client.put('late', { priority: 20 })
  const soon = await client.put('soon', { priority: 10 })
  for (const [place, expected] of [['first', soon], ['second', late]]) {
    const { id } = await client.reserveWithTimeout(5)
    check(`by priority, ${place}`, expected, id)
    await client.delete(id)
  }
}

async function large(client) {
  const body = Buffer.alloc(65535, 'x')
  const id = await client.put(body.toString())
  check('the largest body', { id, payload: body }, await client.reserveWithTimeout(5))
  await client.delete(id)
  await checkRejects('one byte more', 'JOB_TOO_BIG', client.put('x'.repeat(65536)))
}

async function ttr(client, other) {
  const id = await client.put('slow', { ttr: 10 })
  const start = performance.now()
  await client.reserveWithTimeout(5)
  await checkRejects('DEADLINE_SOON in the last second', 'DEADLINE_SOON',
    client.reserveWithTimeout(600))
  const again = await other.reserveWithTimeout(600)
  checkBetween('the job comes back after its TTR', 9500, Infinity, performance.now() - start)
  check('it is the same job', id, again.id)
  check('the timeout is counted', ['1', '2'],
    await jobValues(other, id, 'timeouts', 'reserves'))
  check('in stats too', ['1'], pick(parse(await client.stats()), 'job-timeouts'))
  await checkRejects('its first holder has lost it', 'NOT_FOUND', client.delete(id))
  await other.delete(id)
}

async function waiting(client, other) {
  const start = performance.now()
  await checkRejects('reserve times out', 'TIMED_OUT', client.reserveWithTimeout(1))
  checkBetween('after a second', 900, Infinity, performance.now() - start)

  const job = other.reserve()
  while (parse(await client.statsTube(TUBE))['current-waiting'] !== '1');
  const id = await client.put('for the waiter')
  check('a waiting client gets the job', { id, payload: Buffer.from('for the waiter') }, await job)
  await other.delete(id)
}

async function tubes(client) {
  check('list-tubes', true, parseList(await client.listTubes()).includes(TUBE))
  check('list-tube-used', TUBE, await client.listTubeUsed())
  check('list-tubes-watched', [TUBE], parseList(await client.listTubesWatched()))
  await checkRejects('the last watched tube stays', 'NOT_IGNORED', client.ignore(TUBE))
}

async function totals(client) {
  const stats = parse(await client.stats())
  check('stats counts jobs', ['6', '0', '0', '0', '0'],
    pick(stats, 'total-jobs', 'current-jobs-ready', 'current-jobs-reserved',
      'current-jobs-delayed', 'current-jobs-buried'))
  check('stats counts connections', ['2', '2', '1'],
    pick(stats, 'current-connections', 'current-workers', 'current-producers'))
  check('the version compares as a number', true, parseFloat(stats.version) >= 1)
  check('stats-tube', [TUBE, '6', '6'],
    pick(parse(await client.statsTube(TUBE)), 'name', 'total-jobs', 'cmd-delete'))
}

async function connect() {
  const client = new Jackd()
  await client.connect({
    host: process.env.TUBED_TEST_HOST,
    port: Number(process.env.TUBED_TEST_PORT)
  })
  check('use', TUBE, await client.use(TUBE))
  check('watch', 2, await client.watch(TUBE))
  check('ignore', 1, await client.ignore('default'))
  return client
}

setTimeout(() => {
  console.error('not done within ten minutes')
  process.exit(1)
}, 600_000).unref()

const client = await connect()
const other = await connect()
await workOn(client, await putAndReserve(client))
await order(client)
await large(client)
await ttr(client, other)
await waiting(client, other)
await tubes(client)
await totals(client)
await Promise.all([client.quit(), other.quit()])

if (failures > 0) {
  console.error(`${failures} checks failed`)
  process.exit(1)
}
