import { test } from 'tap'
import { skip } from '../../support/browser.ts'
import { mapOf, namesListed, openConsole, openConsoleWorld, signIn } from '../../support/console.ts'
import { until } from '../../support/service.ts'

const ARABIC = 'حافلة'
/** Letters of these code points are joined ones: nobody types them. */
const JOINED_FROM = 0xfb50

test('Arabic names on the map are joined, by a file that a map without them does not load', {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { service, login, gateway } = await openConsoleWorld(t)
  const send = async (externalId: string): Promise<void> => {
    await gateway.send([{ externalId, recordedAt: Date.now(), lat: 52, lng: 21 }])
    await gateway.drained()
  }
  await send('bus')
  const { page, complaints } = await openConsole(t, service)
  const loaded: string[] = []
  page.on('response', (response) => void loaded.push(response.url()))
  const shaping = () => loaded.filter((url) => url.startsWith(`${service.url}/assets/rtl-text-`))
  await signIn(page, login)
  await until('the tracker', async () => (await namesListed(page)).join() === 'bus')
  const map = await mapOf(page)
  await map('void map.jumpTo({ center: [21, 52], zoom: 13 })')
  const codePoints = (): Promise<number[]> =>
    map('Object.values(map.style.glyphManager.entries).flatMap(({ glyphs }) => Object.keys(glyphs).map(Number))')
  await until('the letters of a name', async () => (await codePoints()).includes('u'.charCodeAt(0)))
  t.same(shaping(), [], 'nothing is loaded that is not needed')
  await send(ARABIC)
  await until('joined letters', async () => (await codePoints()).some((one) => one >= JOINED_FROM))
  t.equal(shaping().length, 1, 'from the service itself')
  t.same(complaints, [], 'no error in the console, no breach of the content policy')
})
