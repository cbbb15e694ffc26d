// Signing in on the page: by password or from elsewhere, then by the second factor, which is set up here where the organization asks for it.
const API = '/api/v3'
/** Where `account.js` leaves the answer of a link that signs in. */
const HANDED = 'waymark-signed-in'

const byId = (id) => document.getElementById(id)
const form = byId('login')

/** What the form sends next, and what is done with the answer. */
let step

/** Shows the form; `onSession` gets the answer of the sign-in that came to its end. */
export function openSignIn(onSession) {
  const finish = async (session) => {
    step = undefined
    form.hidden = true
    await onSession(session)
  }
  const signedIn = async (answer, password) => {
    if (answer.challenge) return askCode(answer.challenge, finish)
    const { data } = await send('GET', '/auth/second-factor', undefined, answer.token)
    if (data.isRequired && !data.isOn) return setUp(answer, password, finish)
    await finish(answer)
  }
  step = async ({ email, password }) => signedIn(await send('POST', '/auth/login', { email, password }), password)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => step?.(Object.fromEntries(new FormData(form))))
  })

  // Taken at once: the token stays in no storage.
  const handed = sessionStorage.getItem(HANDED)
  sessionStorage.removeItem(HANDED)
  if (handed !== null) void attempt(() => signedIn(JSON.parse(handed)))

  // Back from a sign-in elsewhere. The code is in nobody's history: it serves once.
  const back = new URLSearchParams(location.hash.slice(1))
  if (back.has('code') || back.has('error')) history.replaceState(null, '', location.pathname)
  if (back.has('code'))
    void attempt(async () => signedIn(await send('POST', '/auth/exchange', { code: back.get('code') })))
  else if (back.has('error')) complain('The sign-in did not work. Try again, or ask your administrator.')
}

function askCode(challenge, finish) {
  show('code-part', 'Sign in')
  step = async ({ code }) => finish(await send('POST', '/auth/login/second-factor', { challenge, code }))
}

async function setUp(session, password, finish) {
  const { data } = await send('POST', '/auth/second-factor', password === undefined ? {} : { password }, session.token)
  show('code-part', 'Turn it on')
  byId('factor-part').hidden = false
  byId('factor-secret').textContent = data.secret
  byId('factor-link').href = data.otpauthUri
  complain(data.warning ?? '')
  step = async ({ code }) => {
    const confirmed = await send('POST', '/auth/second-factor/confirm', { code }, session.token)
    show('recovery-part', 'I have kept them')
    byId('factor-part').hidden = true
    byId('recovery-codes').textContent = confirmed.data.recoveryCodes.join('\n')
    step = () => finish(session)
  }
}

/** Shows one part of the form in the place of those before. */
function show(id, button) {
  for (const part of ['password-part', 'code-part', 'recovery-part']) byId(part).hidden = part !== id
  for (const input of form.querySelectorAll('input')) input.required = !input.closest('[hidden]')
  byId('sign-in').textContent = button
  form.querySelector('div:not([hidden]) input')?.focus()
}

async function attempt(run) {
  complain('')
  try {
    await run()
  } catch (error) {
    complain(error.message)
  }
}

function complain(text) {
  byId('problem').textContent = text
}

async function send(method, path, body, token) {
  const headers = {
    ...(body && { 'content-type': 'application/json' }),
    ...(token && { authorization: `Bearer ${token}` }),
  }
  const response = await fetch(API + path, { method, headers, body: body && JSON.stringify(body) })
  const answer = await response.json()
  if (!answer.status) throw new Error(answer.message)
  return answer
}
