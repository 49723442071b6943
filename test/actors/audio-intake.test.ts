import { expect, it } from 'vitest';
import { AudioIntake } from '../../actors/stt/audio-intake.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import type { ListeningSession } from '../../media/listening-plane.ts';

const MULAW_8K: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8000, channels: 1 };
const MINUTE_MS = 60_000;

function openIntake() {
  const clock = { nowMs: 1_000_000 };
  const heard: number[] = [];
  const intake = new AudioIntake({ monotonicMs: () => clock.nowMs });
  const ears: Pick<ListeningSession, 'write' | 'configure'> = {
    write: (bytes) => heard.push(bytes.length / 8),
    configure: () => {},
  };
  intake.open(ears as ListeningSession, MULAW_8K);
  const send = (durationMs: number) => intake.write(new Uint8Array(durationMs * 8), MULAW_8K);
  return { clock, heard, intake, send };
}

it('takes audio a minute ahead of its time, and no more', () => {
  const { clock, heard, intake, send } = openIntake();
  expect(send(MINUTE_MS)).toBe('taken');
  expect(send(100)).toBe('flooding');
  clock.nowMs += 100;
  expect(send(100)).toBe('taken');
  expect(heard).toEqual([MINUTE_MS, 100]);
  expect(intake.receivedMs).toBe(MINUTE_MS + 100);
});

it('takes no more at once after a long silence', () => {
  const { clock, send } = openIntake();
  clock.nowMs += 60 * MINUTE_MS;
  expect(send(MINUTE_MS)).toBe('taken');
  expect(send(100)).toBe('flooding');
});

it('tells how far its listener is behind, and takes no more than can be kept', () => {
  const { clock, intake, send } = openIntake();
  const speakFor = (durationMs: number) => {
    clock.nowMs += durationMs;
    return send(durationMs);
  };
  for (let second = 0; second < 10; second += 1) {
    expect(speakFor(1000)).toBe('taken');
    intake.heard(intake.receivedMs - 250);
    expect(intake.behindMs).toBe(0);
  }
  // It hears no more from now on, and the client speaks on at its pace.
  for (let second = 0; second < 90; second += 1) expect(speakFor(1000)).toBe('taken');
  expect(intake.behindMs).toBeGreaterThan(85_000);
  expect([speakFor(1000), speakFor(1000)]).toContain('flooding');
  intake.heard(intake.receivedMs);
  expect(speakFor(1000)).toBe('taken');
});
