import type { EventLog } from '../../engines/event-log.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import { fingerprintOf, openCursor, sealCursor } from '../../kit/http/question-cursor.ts'
import { resultStream, type BacktestPage, type BacktestResult, type FoundTransition } from './events.ts'

/** Start of the next page of an answer: a page of the stream, and an index in it. */
interface ResultPage {
  revision: number
  at: number
}

export interface ResultQuestion {
  backtestId: string
  result: BacktestResult
  limit: number
  cursor?: string
  /** Trackers whose transitions the caller may see now. */
  trackerIds: 'all' | readonly string[]
  show(transition: FoundTransition): object
}

/** Streams up to `limit` transitions as JSON, oldest first. @throws Failure invalid for a cursor of another result. */
export const readResult = async (
  log: Pick<EventLog, 'read'>,
  question: ResultQuestion,
): Promise<AsyncIterable<string>> => {
  const { backtestId, result, limit, cursor, show } = question
  const place = cursor === undefined ? { revision: result.first, at: 0 } : placeOf(cursor, backtestId, result)
  const seen = question.trackerIds === 'all' ? undefined : new Set(question.trackerIds)
  const answer = write(log, {
    backtestId,
    result,
    limit,
    place,
    show,
    isSeen: ({ trackerId }) => seen === undefined || seen.has(trackerId),
  })
  const first = await answer.next()
  return (async function* () {
    yield first.value as string
    yield* answer
  })()
}

async function* write(
  log: Pick<EventLog, 'read'>,
  question: Pick<ResultQuestion, 'backtestId' | 'result' | 'limit' | 'show'> & {
    place: ResultPage
    isSeen(transition: FoundTransition): boolean
  },
): AsyncGenerator<string> {
  const { backtestId, result, limit, show, isSeen } = question
  let { revision, at } = question.place
  let written = 0
  let text = '{"status":true,"data":['
  for (; revision <= result.last && written < limit; revision++, at = 0) {
    const transitions = await readPage(log, resultStream(backtestId, result.attempt), revision)
    for (; at < transitions.length && written < limit; at++) {
      if (!isSeen(transitions[at])) continue
      text += `${written++ > 0 ? ',\n' : '\n'}${JSON.stringify(show(transitions[at]))}`
    }
    yield text
    text = ''
    if (at < transitions.length) break
  }
  const nextCursor = revision > result.last ? null : encode(backtestId, { revision, at })
  yield `${text}],"page":null,"limit":${limit},"nextCursor":${JSON.stringify(nextCursor)}}`
}

const readPage = async (log: Pick<EventLog, 'read'>, stream: string, revision: number): Promise<FoundTransition[]> => {
  const [page] = await log.read(stream, revision, 1)
  if (page?.revision !== revision) throw new Failure('not_found', { message: 'The back-test was deleted meanwhile.' })
  return decodeJson<BacktestPage>(page.data).transitions
}

const encode = (backtestId: string, { revision, at }: ResultPage): string =>
  sealCursor(`${revision}.${at}`, fingerprintOf(backtestId))

const placeOf = (cursor: string, backtestId: string, { first, last }: BacktestResult): ResultPage => {
  const found = /^(\d{1,15})\.(\d{1,15})$/.exec(openCursor(cursor, fingerprintOf(backtestId)))
  const place = { revision: Number(found?.[1]), at: Number(found?.[2]) }
  if (found === null || place.revision < first || place.revision > last)
    throw invalid('/cursor', 'is not a cursor of this result')
  return place
}
