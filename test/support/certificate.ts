import { execFileSync } from 'node:child_process'

/** A certificate that signs itself, for 127.0.0.1; undefined where there is no openssl. */
export const makeCertificate = (folder: string): { certFile: string; keyFile: string } | undefined => {
  const files = { certFile: `${folder}/cert.pem`, keyFile: `${folder}/key.pem` }
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
  try {
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-days',
        '2',
        '-keyout',
        files.keyFile,
        '-out',
        files.certFile,
        ...subject,
      ],
      { stdio: 'ignore' },
    )
    return files
  } catch {
    return undefined
  }
}
