import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, samplesMade, signUp, startService, until } from '../support/service.ts'

const PASSWORD = 'Correct-horse-9-battery'

test('a deleted user or team is taken out of automations that name others too', async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, email, hubId } = await signUp(service)
  await samplesMade(service, token)
  const send = async (method: string, path: string, body?: Json): Promise<Json> =>
    (await ask(service, method, path, { token, body })).data
  const roles: Json[] = await send('GET', '/roles')
  const roleId = roles.find(({ key }) => key === 'fieldUser')._id
  const userOf = async (name: string): Promise<string> =>
    (await send('POST', '/user', { name, email: `${name}.${email}`, password: PASSWORD, roleId, hubId: [hubId] }))._id
  const [gone, stays] = [await userOf('gone'), await userOf('stays')]
  const teamId = (await send('POST', '/team', { name: 'Night', hubId, userIds: [gone, stays] }))._id
  const automate = async (automationType: string, automationDetails: Json): Promise<string> => {
    const body = { name: automationType, event: 'onTaskCreated', automationType, automationDetails }
    return (await send('POST', '/automation', body))._id
  }
  const tell = (to: Json, channel = 'inApp') => automate('notification', { channel, to, text: 'Told' })
  const both = await tell([gone.toUpperCase(), stays])
  const mixed = await tell([gone, 'office@example.com', { roleId }], 'email')
  const alone = await tell(gone)
  const assigns = await automate('assignTask', { assigneeIds: [stays, gone] })
  const toTeam = await automate('assignTask', { assigneeIds: [stays], teamId })
  const toTeamAlone = await automate('assignTask', { teamId })

  await send('DELETE', `/user/${gone}`)
  await send('DELETE', `/team/${teamId}`)
  const read = (id: string): Promise<Json> => send('GET', `/automation/${id}`)
  const detailsOf = async (id: string): Promise<Json> => (await read(id)).automationDetails
  await until('the last of them', async () => (await detailsOf(toTeam)).teamId === undefined)
  await until('both', async () => (await detailsOf(both)).to.length === 1)
  await until('the mixed ones', async () => (await detailsOf(mixed)).to.length === 2)
  await until('assignees', async () => (await detailsOf(assigns)).assigneeIds.length === 1)
  t.same((await detailsOf(both)).to, [stays])
  t.same((await detailsOf(mixed)).to, ['office@example.com', { roleId }])
  t.same(await detailsOf(assigns), { assigneeIds: [stays] })
  t.same(await detailsOf(toTeam), { assigneeIds: [stays] })
  for (const id of [both, mixed, assigns, toTeam]) t.match(await read(id), { isActive: true, notice: undefined })
  t.match(await read(alone), { automationDetails: { to: gone }, notice: { reason: 'peopleGone' } })
  t.match(await read(toTeamAlone), { automationDetails: { teamId }, notice: { reason: 'peopleGone' } })
})
