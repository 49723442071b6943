import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * Moves a finished recording to the object store. `storing` repairs the file if its writer died, moves it and updates
 * its row. After a failure it is `waiting`, twice as long each time. It ends as `stored`, or as `missing` if nothing
 * was recorded. An existing file is retried forever.
 */
export const recordingMachine = setup({
  types: {} as {
    context: RecordingInput & { failures: number };
    input: RecordingInput;
    events: { type: 'retry.requested' };
  },
  actors: {
    /** Resolves false if the file is missing or empty. */
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
  /** Folder of a file taken over from another node. Absent or null: the recording folder of this node. */
  folder?: string | null;
}
