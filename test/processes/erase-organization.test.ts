import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { eventTypes } from '../../src/kit/commands/declared-event.ts'
import type { RecordedEvent } from '../../src/kernel/event.ts'
import { dyingLog, Killed } from '../support/dying-log.ts'
import { until } from '../support/service.ts'
import { openIdentity, PASSWORD } from '../support/open-identity.ts'
import { halvesOf } from './office-truth.ts'

test('an organization whose erasure was killed between every two writes is erased by whoever carries it on', {
  timeout: 600_000,
}, async (t) => {
  const world = await openIdentity(t)
  let isOver = false
  for (let writes = 1; !isOver; writes++) {
    const email = `owner${writes}@example.com`
    const owner = await world.signup({ email })
    const hubId = owner.body.data.hubId as string[]
    const roleId = await world.roleId(owner, 'planner')
    const guest = await world.signup({ email: `guest${writes}@example.com` })
    for (const body of [
      { name: 'Own', email: `own${writes}@example.com`, password: PASSWORD, roleId, hubId },
      { name: 'Guest', email: guest.email, roleId, hubId },
    ])
      await owner.call('POST', '/user', body)
    await owner.call('POST', '/vehicle', { name: 'Van', hubId: hubId[0] })
    const gone = (await owner.call('POST', '/vehicle', { name: 'Gone', hubId: hubId[0] })).body.data._id
    await owner.call('DELETE', `/vehicle/${gone}`)

    const dying = dyingLog(world.log, writes)
    const first = world.over(dying.log)
    const caller = await world.authenticator.authenticate(owner.token)
    const answer = await first
      .call('DELETE', '/organization', {
        caller,
        body: { password: PASSWORD },
        seed: randomBytes(32),
        address: `10.0.1.${writes}`,
      })
      .catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error
        return undefined
      })
    await first.runs.stopCarryingOn()
    await first.runs.idle()
    const { organizationId } = owner.body.data
    isOver = answer !== undefined && !dying.isDead

    // Whoever carries it on later sees what it did in the tables too.
    await until('the users who are buried to leave their table', async () => {
      const { rows } = await world.tables.find('users', organizationId, { limit: 10 })
      const last = await Promise.all(rows.map(({ id }) => world.log.read(`user-${id}`, 'end', 1, 'backwards')))
      return last.every(([event]) => event?.type !== eventTypes('user').deleted)
    })
    const second = world.over(world.log)
    await second.context.services.processes.settle(organizationId)
    t.same(await halvesOf(world), [], `after ${writes} writes nothing is half`)
    t.equal(
      (await world.context.people.findByEmail(email)) === undefined,
      true,
      `after ${writes} writes its people are gone`,
    )
    t.notMatch(textOf(await world.log.read(`vehicle-${gone}`, 0, 10)), /Gone/, 'nor is what was deleted before')
    t.ok(await world.context.people.findByEmail(guest.email), 'who is at home elsewhere stays')
    for (const table of ['users', 'hubs', 'roles', 'vehicles', 'organizations'])
      t.equal((await world.tables.find(table, organizationId, { limit: 1 })).rows.length, 0, table)
    await second.runs.stopCarryingOn()
  }
})

const textOf = (events: readonly RecordedEvent[]): string =>
  events.map(({ data }) => Buffer.from(data).toString()).join(' ')
