import { App, us_socket_local_port } from '../../src/ingress/uws.ts'

/** The ceiling of this machine for this generator: a bare handler that reads the body and answers one as long as a vehicle's. */
const answer = JSON.stringify({ status: true, data: { name: 'x'.repeat(400) } })

App()
  .any('/*', (response, request) => {
    response.onAborted(() => undefined)
    if (request.getMethod() === 'get') return void response.writeHeader('content-type', 'application/json').end(answer)
    let text = ''
    response.onData((chunk, isLast) => {
      text += Buffer.from(chunk).toString()
      if (!isLast) return
      JSON.parse(text)
      response.cork(() => void response.writeHeader('content-type', 'application/json').end(answer))
    })
  })
  .listen('127.0.0.1', 0, (token) => {
    if (!token) process.exit(1)
    process.stdout.write(`${us_socket_local_port(token)}\n`)
  })
