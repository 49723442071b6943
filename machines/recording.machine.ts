import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * A finished recording on its way into the object store. It is `storing` (repaired if its writer died, moved, and its
 * row brought up to date), `waiting` after a failure, twice as long each time, and at last `stored`; or `missing`,
 * when nothing was ever recorded. It never gives up on a file that is there.
 */
export const recordingMachine = setup({
  types: {} as {
    context: RecordingInput & { failures: number };
    input: RecordingInput;
    events: { type: 'retry.requested' };
  },
  actors: {
    /** Resolves false when there is no file, or nothing in it. */
    store: fromPromise<{ stored: boolean }, RecordingInput>(notProvided('store')),
  },
  guards: {
    wasStored: (_, { stored }: { stored: boolean }) => stored,
  },
  delays: {
    backoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.failures, 20)),
  },
  actions: {
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
  },
}).createMachine({
  id: 'recording',
  context: ({ input }) => ({ ...input, failures: 0 }),
  initial: 'storing',
  states: {
    storing: {
      invoke: {
        src: 'store',
        input: ({ context: { recordingId, callId, workspaceId, folder } }) => ({
          recordingId,
          callId,
          workspaceId,
          folder,
        }),
        onDone: [
          { guard: { type: 'wasStored', params: ({ event }) => event.output }, target: 'stored' },
          { target: 'missing' },
        ],
        onError: { target: 'waiting', actions: 'countFailure' },
      },
    },
    waiting: { after: { backoff: 'storing' }, on: { 'retry.requested': 'storing' } },
    stored: { type: 'final' },
    missing: { type: 'final' },
  },
});

const LONGEST_BACKOFF_MS = 60_000;

export interface RecordingInput {
  recordingId: string;
  callId: string;
  workspaceId: string;
  /** Where its file is, if it was taken over from another node. Absent or null: where recordings of this node grow. */
  folder?: string | null;
}
