// From the first sign-up to signing out, with one service and one browser.
import './pages/account.ts'
import './pages/bell.ts'
import './pages/ended.ts'
import './pages/first-run.ts'
import './pages/refresh.ts'
import './pages/session.ts'
import './pages/sheet.ts'
import './pages/sign-in.ts'
