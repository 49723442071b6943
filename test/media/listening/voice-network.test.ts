import { afterEach, describe, expect, it, vi } from 'vitest';
import { SileroNetworks } from '../../../media/listening/silero-network.ts';
import { spokenUtterances } from '../../speech/spoken.ts';

const WINDOW = 512;
const command = spokenUtterances().find(({ name }) => name === 'goforward')!.samples;

function verdicts(networks: SileroNetworks): string {
  const network = networks.take()!;
  let heard = '';
  for (let at = 0; at + WINDOW <= command.length; at += WINDOW) {
    heard += network.hears(Float32Array.from(command.subarray(at, at + WINDOW))) ? '#' : '.';
  }
  networks.giveBack(network);
  return heard;
}

afterEach(() => {
  vi.doUnmock('sherpa-onnx-node/vad.js');
  vi.resetModules();
});

describe('the voice network', () => {
  it('hears the command in its recording, and nothing before and after it', async () => {
    expect(verdicts(await SileroNetworks.load())).toMatch(/^\.{14,20}#{48,60}\.{14,20}$/);
  });

  it('remembers nothing of the session it served before', async () => {
    const networks = await SileroNetworks.load();
    const first = verdicts(networks);
    expect(verdicts(networks)).toBe(first);
  });

  it('is loaded no more often than it is used at the same time', async () => {
    const networks = await SileroNetworks.load();
    const takeAll = () => Array.from({ length: 24 }, () => networks.take()!);
    const first = takeAll();
    for (const network of first) networks.giveBack(network);
    expect(new Set([...first, ...takeAll()]).size).toBe(24);
  });

  it('says why there is none where its library cannot be loaded', async () => {
    vi.resetModules();
    vi.doMock('sherpa-onnx-node/vad.js', () => {
      throw new Error('no such platform');
    });
    const { SileroNetworks: Fresh } = await import('../../../media/listening/silero-network.ts');
    const networks = await Fresh.load();
    expect(networks.problem).toEqual(expect.any(String));
    expect(networks.take()).toBeNull();
  });
});
