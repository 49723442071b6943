import { describe, expect, it } from 'vitest';
import { CallPlaybacks } from '../../actors/call-playbacks.ts';
import type { PlayedSound, SendingEnd } from '../../media/media-plane.ts';

const SAMPLES = Int16Array.of(1, 2, 3);

/** Media whose sounds go on until the test ends them. */
class StageMedia {
  readonly sounds: { leg: string; sound: PlayedSound; end: (end: SendingEnd) => void }[] = [];
  readonly stopped: string[] = [];

  play(leg: string, sound: PlayedSound): Promise<SendingEnd> {
    const { promise, resolve } = Promise.withResolvers<SendingEnd>();
    // As the plane does: another sound to the same leg ends the one before.
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

describe('the sounds that are played to a call', () => {
  it('go to each leg in a copy of its own, over what it hears', async () => {
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

  it('are given away to the media, so that a sound of minutes is kept in one place', () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const samples = Int16Array.of(1, 2, 3);
    void playbacks.play(media, play('a', ['agent', 'customer'], true), samples);
    expect(media.sounds[1]!.sound.samples.buffer).toBe(samples.buffer);
  });

  it('are refused as too many at once when another ends them before they begin', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const first = playbacks.play(media, play('a', ['agent']), SAMPLES);
    void playbacks.play(media, play('b', ['agent']), SAMPLES);
    expect(await first).toBe('CONTROL_BUSY');
  });

  it('are over when they are over for every leg', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    void playbacks.play(media, play('a', ['agent', 'customer']), SAMPLES);
    playbacks.begin('a');
    const end = playbacks.end('a');
    media.sounds[0]!.end('played');
    media.sounds[1]!.end('played');
    expect(await end).toBe('played');
    expect(await playbacks.end('a')).toBeNull();
  });

  it('are refused when no leg listens, and play to the one that does', async () => {
    const [playbacks, media] = [new CallPlaybacks(), new StageMedia()];
    const nobody = playbacks.play(media, play('a', ['agent', 'customer']), SAMPLES);
    for (const sound of media.sounds) sound.end('not-listening');
    expect(await nobody).toBe('LEG_NOT_LISTENING');
    const one = playbacks.play(media, play('b', ['agent', 'customer']), SAMPLES);
    media.sounds[2]!.end('not-listening');
    playbacks.begin('b');
    expect(await one).toBeNull();
    const end = playbacks.end('b');
    media.sounds[3]!.end('played');
    expect(await end).toBe('played');
  });

  it('are refused when the media cannot play them', async () => {
    const playbacks = new CallPlaybacks();
    const media = { play: () => Promise.reject(new Error('the worker is gone')) };
    expect(await playbacks.play(media, play('a', ['agent']), SAMPLES)).toBe('INTERNAL');
  });

  it('are stopped where they are still heard, and whoever stopped them is told alone', async () => {
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
