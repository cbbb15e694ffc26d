// Loaded into each test before what tap loads: hooks on every module, source maps and a domain on every promise took as
// much CPU as the tests themselves, and none of it is needed to run what is compiled.
const asyncHooks = require('node:async_hooks')
const modules = require('node:module')

const idle = { enable: () => idle, disable: () => idle }
asyncHooks.createHook = () => idle
modules.register = modules.registerHooks = () => undefined
modules.syncBuiltinESMExports()
process.setSourceMapsEnabled(false)
process.setSourceMapsEnabled = () => undefined
// The processes that a test starts do not inherit it either: it would also catch the signals of their crashes.
delete process.env.NODE_OPTIONS
process.env.__TAPJS_PROCESSINFO_TESTING_NO_REGISTER__ = String(process.pid)
