// Pages of mailed links: each sends one form to the public API, with the secret of the link.
const PAGES = {
  '/accept-invitation': {
    what: 'Accept the invitation',
    fields: { name: false, password: true },
    autocomplete: 'new-password',
    hint: 'If you have a Waymark account, give its password, and leave the name out. Otherwise choose a password of at least 8 characters.',
    path: '/auth/accept-invitation',
  },
  '/reset-password': {
    what: 'Choose a new password',
    fields: { password: true },
    autocomplete: 'new-password',
    hint: 'At least 8 characters. You are signed out everywhere else.',
    path: '/auth/reset-password',
  },
  '/verify-email': {
    what: 'Confirm your e-mail address',
    fields: { password: false },
    autocomplete: 'current-password',
    hint: 'You are signed out everywhere else. If you have never confirmed an address, choose a password. If an administrator changed your address, your present password keeps your other organizations open. Otherwise leave it out.',
    path: '/auth/verify-email',
    signsIn: true,
  },
  '/forgot-password': {
    what: 'Forgot your password?',
    fields: { email: true },
    hint: 'We mail you a link that sets a new one.',
    path: '/auth/forgot-password',
  },
}

/** Storage keys that the console reads: the answer of a link that signs in, and whether there is a session's cookie. */
const HAS_COOKIE = 'waymark-session'
const HANDED = 'waymark-signed-in'

const byId = (id) => document.getElementById(id)
const page = PAGES[location.pathname]
const token = new URLSearchParams(location.search).get('token')
// Keeps the secret out of the address bar and the browser's history.
history.replaceState(null, '', location.pathname)

byId('what').textContent = page.what
byId('send').textContent = page.what
byId('hint').textContent = page.hint
for (const [name, isRequired] of Object.entries(page.fields)) {
  byId(name).hidden = false
  byId(name).querySelector('input').required = isRequired
}
if (page.autocomplete) byId('password').querySelector('input').autocomplete = page.autocomplete

byId('login').addEventListener('submit', async (event) => {
  event.preventDefault()
  byId('problem').textContent = ''
  const sent = [...new FormData(event.target)].filter(([name, value]) => name in page.fields && value !== '')
  const body = {
    ...(token === null ? {} : { token }),
    ...(page.signsIn && { session: 'cookie' }),
    ...Object.fromEntries(sent),
  }
  try {
    const answer = await post(page.path, body)
    if (!answer.status) throw new Error(answer.message)
    if (page.signsIn && (answer.token || answer.challenge)) return goOn(answer)
    for (const part of event.target.querySelectorAll('label, button, #hint')) part.hidden = true
    byId('done').querySelector('span').textContent = answer.message
    byId('done').hidden = false
  } catch (error) {
    byId('problem').textContent = error.message
  }
})

/** The answer is that of a login: the page at `/` takes it from this tab's storage and continues from there. */
function goOn(answer) {
  sessionStorage.setItem(HANDED, JSON.stringify(answer))
  localStorage.setItem(HAS_COOKIE, 'yes')
  location.replace('/')
}

async function post(path, body) {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`/api/v3${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return response.json()
}
