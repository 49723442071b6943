import { describe, expect, it, vi } from 'vitest';
import { openNodeCommands } from '../../../actors/cluster/node-commands.ts';
import type { NodeRelay } from '../../../storage/nodes/node-relay.ts';
import { untilTruthy } from '../../eventually.ts';
import { createTestClock, createTestLogger, quiet } from '../fakes.ts';
import { RelayHub } from './relay-hub.ts';

describe('command for another node', () => {
  it('returns what the other node answers', async () => {
    const { sender, execute } = await twoNodes();
    execute.mockResolvedValue({ isHeld: true });
    await expect(sender.send('receiver', 'hold', { leg: 'agent' })).resolves.toEqual({ isHeld: true });
    expect(execute.mock.calls).toEqual([['hold', { leg: 'agent' }]]);
  });

  it('does nothing on a node that was frozen until the sender gave up', async () => {
    const { sender, execute, clock, hub } = await twoNodes();
    const thaw = hub.freeze('receiver');
    const sent = sender.send('receiver', 'play', {});
    sent.catch(() => {});
    await untilTruthy(() => clock.waiting().length > 0, 'the sender waits');
    clock.advance(1_000);
    await expect(sent).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    thaw();
    await untilTruthy(() => clock.waiting().length > 0, 'the receiver waits for the confirmation');
    clock.advance(5_000);
    await quiet();
    expect(execute).not.toHaveBeenCalled();
  });

  it('fails as soon as the other node drops it because its confirmation was lost', async () => {
    const { sender, execute, clock } = await twoNodes({ confirm: async () => 0 });
    const sent = sender.send('receiver', 'play', {});
    sent.catch(() => {});
    await untilTruthy(() => clock.waiting().includes(5_000), 'the receiver waits for the confirmation');
    clock.advance(5_000);
    await expect(sent).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    expect(execute).not.toHaveBeenCalled();
  });

  it('succeeds if its confirmation arrives although sending it failed', async () => {
    const { sender, execute } = await twoNodes({
      confirm: async (publish) => {
        await publish();
        throw new Error('the connection was lost after the commit');
      },
    });
    execute.mockImplementation(async () => {
      await quiet();
      return { isHeld: true };
    });
    await expect(sender.send('receiver', 'hold', {})).resolves.toEqual({ isHeld: true });
  });

  it('needs no confirmation from nodes of earlier versions if it is recent', async () => {
    const { execute, clock, hub } = await twoNodes();
    const earlier = hub.connect('earlier');
    const from = { from: 'earlier', command: 'hold', args: {} };
    await earlier.publish('nodes.receiver.commands', { id: '1', ...from, sentAtMs: clock.now() - 9_000 });
    await earlier.publish('nodes.receiver.commands', { id: '2', ...from, sentAtMs: clock.now() - 11_000 });
    await untilTruthy(() => execute.mock.calls.length > 0, 'a command is executed');
    await quiet();
    expect(execute).toHaveBeenCalledTimes(1);
  });
});

/** `confirm` sends the confirmations. */
async function twoNodes({ confirm = async (publish: () => Promise<number>) => await publish() } = {}) {
  const hub = new RelayHub();
  const clock = createTestClock();
  const execute = vi.fn(async (): Promise<unknown> => null);
  const shared = { clock, logger: createTestLogger(), execute };
  const own = hub.connect('sender');
  const publish: NodeRelay['publish'] = async (topic, message) => {
    const send = () => own.publish(topic, message);
    return topic.endsWith('.confirmations') ? await confirm(send) : await send();
  };
  const sender = await openNodeCommands({ ...shared, relay: { ...own, publish }, boot: 'sender' });
  await openNodeCommands({ ...shared, relay: hub.connect('receiver'), boot: 'receiver' });
  return { sender, execute, clock, hub };
}
