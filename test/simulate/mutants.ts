/** A change to the code that breaks what the service promises: it says what the code says, compiled, and what instead. */
export interface Mutant {
  name: string
  /** Below the folder of what was compiled. */
  file: string
  from: string
  to: string
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a claim of a name that somebody else has is taken',
    file: 'src/kit/commands/unique-claim.js',
    from: 'if (isOthers && (',
    to: 'if (false && (',
  },
  {
    name: 'decisions and runs are appended with `any`, not behind the last own one',
    file: 'src/kit/consumers/owned-stream.js',
    from: "this.head < 0 ? 'none' : this.head",
    to: "'any'",
  },
  {
    name: 'a late point moves the latest position',
    file: 'src/features/locations/views.js',
    from: 'recordedAt > piece.doubles[at >> 1]',
    to: 'true',
  },
  {
    name: 'each commit of rows takes their fence first, and follows the checkpoint that stands there',
    file: 'src/kit/consumers/checkpoint.js',
    from: 'const { consumer, fence } = this;',
    to: 'const { consumer } = this; const { at: stands, fence } = await this.tables.take(consumer); this.at = stands;',
  },
  {
    name: 'latest positions store their checkpoint before their rows',
    file: 'projections/latest-position.js',
    from: 'await state.checkpoint.commit(part.changes, isLast ? latestPlace(partition, at) : undefined, part.numbers);',
    to: 'await state.checkpoint.commit([], latestPlace(partition, at)); await state.checkpoint.commit(part.changes, undefined, part.numbers);',
  },
  {
    name: 'the id of a run is another one each time',
    file: 'src/reactors/dispatch/pending-runs.js',
    from: 'const runId = runIdOf(trigger, automationId);',
    to: 'const runId = runIdOf({ ...trigger, sourceId: trigger.sourceId + performance.now() }, automationId);',
  },
  {
    name: 'commands are appended with `any`, not at the version that they decided on',
    file: 'src/kit/commands/handle-command.js',
    from: "version === 0 ? 'none' : version - 1",
    to: "'any'",
  },
  {
    name: 'points whose append failed are acknowledged, and appended later',
    file: 'src/features/locations/ingest/batcher.js',
    from: 'this.refuse(queue, segments, error);',
    to: 'for (const { ticket } of segments.splice(0)) if (--ticket.remaining === 0) ticket.durable(); queue.failures++;',
  },
  {
    name: 'the matcher saves its state before its decisions are in the log',
    file: 'src/reactors/matcher/partition.js',
    from: 'await this.outbox?.settled();\n            if',
    to: 'if',
  },
  {
    name: 'latest positions go on with what they held after another process took the partition',
    file: 'projections/latest-position.js',
    from: 'return this.lost(partition, state);',
    to: `{
      state.checkpoint = await OwnedCheckpoint.take(this.options.tables, latestPositionCheckpoint(partition));
      for (const [trackerId, organizationId] of waiting) state.changed.set(trackerId, organizationId);
      return;
    }`,
  },
  {
    name: 'positions that were not stored yet when the first dashboard came are not read from the log',
    file: 'src/live/load-organization.js',
    from: '(keptUpTo[partition] ?? -1) + 1',
    to: 'last + 1',
  },
  {
    name: 'a dashboard that comes back hears again what a process further ahead has told it',
    file: 'src/live/client.js',
    from: 'furthest(question.seen, to)',
    to: 'to',
  },
  {
    name: 'a dashboard that comes back misses what happens until it has caught up',
    file: 'src/live/client.js',
    from: 'one = held.shift(); one !== undefined',
    to: 'one = held.shift(); false',
  },
]
