import { describe, expect, it } from 'vitest';
import { FULL_SCALE_POWER, SILENCE_DBOV } from '../../media/dsp/level.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { LevelMeter } from '../../media/relay/level-meter.ts';
import { Bench } from './relay-bench.ts';

const FRAME_TICKS = 160;
const powerOf = (dbov: number) => FULL_SCALE_POWER * 10 ** (dbov / 10);

function fed(meter: LevelMeter, dbov: number, frames: number): LevelMeter {
  for (let frame = 0; frame < frames; frame++) meter.addFrame(powerOf(dbov), FRAME_TICKS);
  return meter;
}

describe('party level meter', () => {
  it('covers the time since the last reading, and reads silence without packets', () => {
    const meter = fed(new LevelMeter(), -20, 25);
    expect(meter.read()).toEqual({ levelDbov: -20, isSpeaking: true });
    expect(meter.read()).toEqual({ levelDbov: SILENCE_DBOV, isSpeaking: false });
  });

  it('distinguishes speech from steady noise and clicks', () => {
    const meter = new LevelMeter();
    for (let reading = 0; reading < 40; reading++) fed(meter, -48, 25).read();
    expect(fed(meter, -48, 25).read()).toEqual({ levelDbov: -48, isSpeaking: false });
    fed(meter, -48, 20);
    expect(fed(meter, -25, 5).read().isSpeaking).toBe(true);
    fed(meter, -48, 21);
    expect(fed(meter, -25, 4).read().isSpeaking).toBe(false);
    expect(fed(new LevelMeter(), -55, 25).read()).toEqual({ levelDbov: -55, isSpeaking: false });
  });
});

describe('session metering', () => {
  it('posts levels every half second and quality every three seconds until stopped', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.session.tick();
    bench.session.tick();
    expect(bench.measurements).toEqual([]);

    bench.session.setMeasured(true);
    const frames = toneFrames('PCMU', { frequenciesHz: [500], levelDbfs: -20, durationMs: 500 });
    for (const frame of frames) bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.settled('agent');
    for (let tick = 0; tick < 12; tick++) bench.session.tick();
    expect(bench.measurements).toHaveLength(7);
    const [first, second] = bench.measurements;
    expect(first).toMatchObject({ type: 'levels.measured', levels: { agent: { isSpeaking: true } } });
    expect(second).toEqual({
      type: 'levels.measured',
      levels: {
        agent: { levelDbov: SILENCE_DBOV, isSpeaking: false },
        customer: { levelDbov: SILENCE_DBOV, isSpeaking: false },
      },
    });
    expect(bench.measurements.at(-1)).toMatchObject({
      type: 'quality.measured',
      quality: { agent: { codec: 'PCMU', packets_received: frames.length, packets_lost: 0 } },
    });

    bench.session.setMeasured(false);
    for (let tick = 0; tick < 12; tick++) bench.session.tick();
    expect(bench.measurements).toHaveLength(7);
  });
});
