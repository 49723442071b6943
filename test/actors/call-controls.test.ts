import { expect, it } from 'vitest';
import { openCallControls } from '../../actors/call-controls.ts';
import { type CallControl, type ControlRefusal, OPEN_TALK } from '../../machines/call-control.ts';
import { partial } from '../partial.ts';

type Actor = Parameters<typeof openCallControls>[0]['actor'];

interface Requested {
  controlId: string;
  control: CallControl;
}

/** An actor of a call that answers every control with the same result. */
function answering(refusal: ControlRefusal | null, { talk = OPEN_TALK, requests = [] as Requested[] } = {}): Actor {
  let emit = (_event: { controlId: string; refusal: ControlRefusal | null }) => {};
  const snapshot = { status: 'active', matches: () => true, context: { talk } };
  return partial<Actor>({
    on: (_type: string, listener: unknown) => {
      emit = listener as typeof emit;
      return { unsubscribe() {} };
    },
    getSnapshot: () => snapshot as unknown as ReturnType<Actor['getSnapshot']>,
    send(event: object) {
      const requested = event as Requested;
      requests.push(requested);
      emit({ controlId: requested.controlId, refusal });
    },
  });
}

it('does not deny the transfer under way when a request names another one', async () => {
  const controls = openCallControls({
    actor: answering('TRANSFER_NOT_FOUND'),
    journal: { drained: async () => {} },
  });
  const completion = controls.request({ type: 'transfer.complete', target: 'leg_1' });
  await expect(completion).rejects.toMatchObject({
    code: 'TRANSFER_NOT_FOUND',
    message: expect.stringMatching(/^The call has no such transfer under way\./),
  });
});

it('applies a control of a role to the leg that has taken its place meanwhile', async () => {
  const talk = {
    ...OPEN_TALK,
    left: ['agent' as const],
    guests: { leg_1: null },
    standIns: { leg_1: 'agent' as const },
  };
  const requests: Requested[] = [];
  const controls = openCallControls({
    actor: answering(null, { talk, requests }),
    journal: { drained: async () => {} },
  });
  const play = { type: 'play', playbackId: 'play_1', isLooped: false, characters: null } as const;
  controls.requireTalk(['agent', 'customer']);
  await controls.request({ type: 'hold', leg: 'agent', music: true });
  await controls.request({ type: 'mute', leg: 'customer' });
  await controls.request({ ...play, legs: ['agent', 'customer'] });
  await controls.request({ type: 'transfer', leg: 'agent', target: 'leg_2', mode: 'blind' });
  expect(requests.map(({ control }) => control)).toEqual([
    { type: 'hold', leg: 'leg_1', music: true },
    { type: 'mute', leg: 'customer' },
    { ...play, legs: ['leg_1', 'customer'] },
    { type: 'transfer', leg: 'agent', target: 'leg_2', mode: 'blind' },
  ]);
});
