import { expect, it } from 'vitest';
import { AudioIntake } from '../../actors/stt/audio-intake.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import type { ListeningSession } from '../../media/listening-plane.ts';

const MULAW_8K: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8000, channels: 1 };
const MINUTE_MS = 60_000;

function openIntake() {
  const clock = { nowMs: 1_000_000 };
  const received: number[] = [];
  const intake = new AudioIntake({ monotonicMs: () => clock.nowMs });
  const listener: Pick<ListeningSession, 'write' | 'configure'> = {
    write: (bytes) => received.push(bytes.length / 8),
    configure: () => {},
  };
  intake.open(listener as ListeningSession, MULAW_8K);
  const send = (durationMs: number) => intake.write(new Uint8Array(durationMs * 8), MULAW_8K);
  return { clock, received, intake, send };
}

it('the intake accepts audio at most a minute ahead of real time', () => {
  const { clock, received, intake, send } = openIntake();
  expect(send(MINUTE_MS)).toBe('taken');
  expect(send(100)).toBe('flooding');
  clock.nowMs += 100;
  expect(send(100)).toBe('taken');
  expect(received).toEqual([MINUTE_MS, 100]);
  expect(intake.receivedMs).toBe(MINUTE_MS + 100);
});

it('a long silence does not extend the allowance', () => {
  const { clock, send } = openIntake();
  clock.nowMs += 60 * MINUTE_MS;
  expect(send(MINUTE_MS)).toBe('taken');
  expect(send(100)).toBe('flooding');
});

it("the intake reports the listener's lag, and rejects audio beyond its buffer", () => {
  const { clock, intake, send } = openIntake();
  const speakFor = (durationMs: number) => {
    clock.nowMs += durationMs;
    return send(durationMs);
  };
  for (let second = 0; second < 10; second += 1) {
    expect(speakFor(1000)).toBe('taken');
    intake.analysed(intake.receivedMs - 250);
    expect(intake.behindMs).toBe(0);
  }
  // The listener stops processing while the client sends in real time.
  for (let second = 0; second < 90; second += 1) expect(speakFor(1000)).toBe('taken');
  expect(intake.behindMs).toBeGreaterThan(85_000);
  expect([speakFor(1000), speakFor(1000)]).toContain('flooding');
  intake.analysed(intake.receivedMs);
  expect(speakFor(1000)).toBe('taken');
});
