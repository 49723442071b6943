import { expect, it } from 'vitest';
import { openCallControls } from '../../actors/call-controls.ts';
import type { ControlRefusal } from '../../machines/call-control.ts';
import { partial } from '../partial.ts';

type Actor = Parameters<typeof openCallControls>[0]['actor'];

/** An actor of a call that refuses every control. */
function refusing(refusal: ControlRefusal): Actor {
  let emit = (_event: { controlId: string; refusal: ControlRefusal }) => {};
  return partial<Actor>({
    on: (_type: string, listener: unknown) => {
      emit = listener as typeof emit;
      return { unsubscribe() {} };
    },
    getSnapshot: () => ({ status: 'active' }) as ReturnType<Actor['getSnapshot']>,
    send: (event: { type: string; controlId?: string }) => emit({ controlId: event.controlId!, refusal }),
  });
}

it('does not deny the transfer under way when a request names another one', async () => {
  const controls = openCallControls({
    actor: refusing('TRANSFER_NOT_FOUND'),
    journal: { drained: async () => {} },
  });
  const completion = controls.request({ type: 'transfer.complete', target: 'leg_1' });
  await expect(completion).rejects.toMatchObject({
    code: 'TRANSFER_NOT_FOUND',
    message: expect.stringMatching(/^The call has no such transfer under way\./),
  });
});
