import { getPriority } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FrameError } from '../../runtime/frames.ts';
import { type ProcessError, type ProcessOptions, SupervisedProcess } from '../../runtime/supervised-process.ts';

const started: SupervisedProcess[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(started.splice(0).map((child) => child.close()));
});

function start(options: Partial<ProcessOptions> = {}) {
  const lost = Promise.withResolvers<ProcessError>();
  const losses: string[] = [];
  let arrived = Promise.withResolvers<unknown>();
  const child = new SupervisedProcess({
    entry: new URL('./scripted-process.ts', import.meta.url),
    name: 'the scripted process',
    onMessage: ({ head }) => {
      arrived.resolve(head);
    },
    onLost: (error) => {
      losses.push(error.message);
      lost.resolve(error);
    },
    ...options,
  });
  started.push(child);
  return {
    child,
    lost: lost.promise,
    losses,
    ask(head: string): Promise<unknown> {
      arrived = Promise.withResolvers();
      child.send(head);
      return arrived.promise;
    },
  };
}

describe('supervised process', () => {
  it('exchanges messages at a lower priority than its owner', async () => {
    const { child, ask } = start();
    expect(await ask('hello')).toBe('hello');
    expect(getPriority(child.pid)).toBeGreaterThan(getPriority());
  });

  it('receives only allowed environment variables', async () => {
    vi.stubEnv('TANDEM_SECRET_KEY', 'secret');
    vi.stubEnv('CUDA_VISIBLE_DEVICES', '0');
    expect(await start().ask('environment')).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/TANDEM|CUDA/)]),
    );
    const names = await start({ environment: ['CUDA_VISIBLE_DEVICES'] }).ask('environment');
    expect(names).toEqual(expect.arrayContaining(['PATH', 'CUDA_VISIBLE_DEVICES']));
    expect(names).not.toContain('TANDEM_SECRET_KEY');
  });

  it('receives the flags of its entry, and none of ours', async () => {
    expect(await start().ask('flags')).toEqual([]);
    expect(await start({ nodeFlags: ['--v8-pool-size=1'] }).ask('flags')).toEqual(['--v8-pool-size=1']);
  });

  it('hides the end of its output from logged fields', async () => {
    const { child, ask, lost } = start();
    await ask('chatter');
    child.send('exit');
    const error = await lost;
    expect(error.message).toBe('the scripted process ended (code 3)');
    expect(error.output).toHaveLength(4000);
    expect(error.output).toContain('x'.repeat(1000));
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain('last words');
  });

  it('prints its error before it exits', async () => {
    const { child, lost } = start();
    child.send('fail');
    const { message, output } = await lost;
    expect([message, output]).toEqual(['the scripted process ended (code 1)', 'Error: as asked\n']);
  });

  it('ends and reports a protocol violation', async () => {
    const { child, ask, lost, losses } = start({
      onMessage() {
        throw new FrameError('not what was agreed');
      },
    });
    void ask('anything');
    expect((await lost).message).toBe('the scripted process broke the protocol (not what was agreed)');
    await child.ended;
    expect(losses).toHaveLength(1);
    expect(child.failure).toBe(await lost);
  });

  it('ends at its timeout, unless the watchdog was stopped', async () => {
    const { child, ask, lost } = start();
    const stop = child.breakOffAfter(0, 'took too long');
    stop();
    expect(await ask('hello')).toBe('hello');
    child.breakOffAfter(0, 'took too long');
    expect((await lost).message).toBe('the scripted process took too long');
    await child.ended;
  });

  it('reports the first reason only', async () => {
    const { child, losses } = start();
    await child.close();
    child.breakOff('too late');
    await child.close();
    expect(losses).toEqual(['the scripted process was closed']);
  });
});
