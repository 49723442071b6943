import { describe, expect, it } from 'vitest';
import { CallPlaybacks } from '../../actors/call-playbacks.ts';
import type { PlayedSound, SendingEnd } from '../../media/media-plane.ts';

const SAMPLES = Int16Array.of(1, 2, 3);

/** Media whose sounds continue until the test ends them. */
class StageMedia {
  readonly sounds: { leg: string; sound: PlayedSound; end: (end: SendingEnd) => void }[] = [];
  readonly stopped: string[] = [];

  play(leg: string, sound: PlayedSound): Promise<SendingEnd> {
    const { promise, resolve } = Promise.withResolvers<SendingEnd>();
    // As in the media plane, a new sound ends the previous one on a leg.
    this.#endAt(leg);
    this.sounds.push({ leg, sound, end: resolve });
    return promise;
  }

  async stopPlaying(leg: string): Promise<void> {
    this.stopped.push(leg);
    this.#endAt(leg);
  }

  #endAt(leg: string): void {
    for (const sound of this.sounds) if (sound.leg === leg) sound.end('stopped');
  }
}

const play = (playbackId: string, legs: string[], isLooped = false) =>
  ({ type: 'play', playbackId, legs, isLooped, characters: null }) as const;

describe('call playbacks', () => {
  it("play a separate copy of the samples over each leg's audio", async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const begun = playbacks.play(media, play('a', ['agent', 'customer'], true), SAMPLES);
    playbacks.begin('a');
    expect(await begun).toBeNull();
    expect(media.sounds.map(({ leg }) => leg)).toEqual(['agent', 'customer']);
    const [first, second] = media.sounds.map(({ sound }) => sound);
    const how = { sampleRateHz: 16_000, over: true, isLooped: true, ifListening: true, playbackId: 'a' };
    expect(first).toEqual({ samples: SAMPLES, ...how });
    expect(first!.samples.buffer).not.toBe(second!.samples.buffer);
  });

  it('transfer the samples to the media without another copy', () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const samples = Int16Array.of(1, 2, 3);
    void playbacks.play(media, play('a', ['agent', 'customer'], true), samples);
    expect(media.sounds[1]!.sound.samples.buffer).toBe(samples.buffer);
  });

  it('fail with CONTROL_BUSY when another sound replaces them before they start', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const first = playbacks.play(media, play('a', ['agent']), SAMPLES);
    void playbacks.play(media, play('b', ['agent']), SAMPLES);
    expect(await first).toBe('CONTROL_BUSY');
  });

  it('end when they end on every leg', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    void playbacks.play(media, play('a', ['agent', 'customer']), SAMPLES);
    playbacks.begin('a');
    const end = playbacks.end('a');
    media.sounds[0]!.end('played');
    media.sounds[1]!.end('played');
    expect(await end).toBe('played');
    expect(await playbacks.end('a')).toBeNull();
  });

  it('fail when no leg listens, and play to a single one that does', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const refusal = playbacks.play(media, play('a', ['agent', 'customer']), SAMPLES);
    for (const sound of media.sounds) sound.end('not-listening');
    expect(await refusal).toBe('LEG_NOT_LISTENING');
    const one = playbacks.play(media, play('b', ['agent', 'customer']), SAMPLES);
    media.sounds[2]!.end('not-listening');
    playbacks.begin('b');
    expect(await one).toBeNull();
    const end = playbacks.end('b');
    media.sounds[3]!.end('played');
    expect(await end).toBe('played');
  });

  it('fail when the media cannot play them', async () => {
    const playbacks = new CallPlaybacks();
    const media = { play: () => Promise.reject(new Error('the worker is gone')) };
    expect(await playbacks.play(media, play('a', ['agent']), SAMPLES)).toBe('INTERNAL');
  });

  it('stop on the legs that still play them, and notify only the stopping request', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    void playbacks.play(media, play('a', ['agent', 'customer'], true), SAMPLES);
    playbacks.begin('a');
    void playbacks.play(media, play('b', ['agent']), SAMPLES);
    playbacks.begin('b');
    const [endOfA, endOfB] = [playbacks.end('a'), playbacks.end('b')];
    expect(await playbacks.stop(media, 'a')).toBeNull();
    expect(media.stopped).toEqual(['customer']);
    expect(await endOfA).toBeNull();
    expect(await playbacks.stop(media, 'a')).toBe('PLAYBACK_NOT_FOUND');
    media.sounds[2]!.end('played');
    expect(await endOfB).toBe('played');
  });
});
