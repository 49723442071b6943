import type { CallControl, ControlRefusal } from '../machines/call-control.ts';
import type { LegId } from '../machines/events.ts';
import type { MediaSession, PlaybackEnd, SendingEnd } from '../media/media-plane.ts';

type PlayControl = Extract<CallControl, { type: 'play' }>;

/** Sounds that controls play to the legs of one call, from request to end. */
export class CallPlaybacks {
  readonly #playing = new Map<string, Playing>();
  readonly #playbackOf = new Map<LegId, string>();

  /**
   * Resolves once the first leg hears the sound, or with the reason that none does. Transfers the samples: do not use
   * them again.
   */
  async play(
    media: Pick<MediaSession, 'play'>,
    { playbackId, legs, isLooped }: PlayControl,
    samples: Int16Array<ArrayBuffer>,
  ): Promise<ControlRefusal | null> {
    const begun = Promise.withResolvers<ControlRefusal | null>();
    const ends = legs.map(async (leg, i) => {
      this.#playbackOf.set(leg, playbackId);
      // `play` takes ownership of its samples. The last leg gets the original, so that no copy remains here.
      const own = i === legs.length - 1 ? samples : samples.slice();
      const sound = {
        samples: own,
        sampleRateHz: 16_000 as const,
        over: true,
        isLooped,
        ifListening: true,
        playbackId,
      };
      const end = await media.play(leg, sound).catch(() => null);
      if (this.#playbackOf.get(leg) === playbackId) this.#playbackOf.delete(leg);
      return end;
    });
    const ended = Promise.all(ends).then((all) => {
      this.#playing.delete(playbackId);
      // No effect if a leg has started to hear it.
      begun.resolve(refusalOf(all));
      return endOf(all);
    });
    this.#playing.set(playbackId, { legs, ended, isStopped: false, begin: () => begun.resolve(null) });
    return await begun.promise;
  }

  /** Marks the playback as begun: its first packet is on the way to a leg. */
  begin(playbackId: string): void {
    this.#playing.get(playbackId)?.begin();
  }

  /** Resolves with how the playback ended; null if `stop` ended it or it is already over. */
  async end(playbackId: string): Promise<PlaybackEnd | null> {
    const playing = this.#playing.get(playbackId);
    if (playing === undefined) return null;
    const end = await playing.ended;
    return playing.isStopped ? null : end;
  }

  async stop(media: Pick<MediaSession, 'stopPlaying'>, playbackId: string): Promise<ControlRefusal | null> {
    const playing = this.#playing.get(playbackId);
    if (playing === undefined || playing.isStopped) return 'PLAYBACK_NOT_FOUND';
    playing.isStopped = true;
    // Legs that now hear another sound keep it.
    const hearing = playing.legs.filter((leg) => this.#playbackOf.get(leg) === playbackId);
    await Promise.all(hearing.map((leg) => media.stopPlaying(leg)));
    await playing.ended;
    return null;
  }

  /** Ends the sound that a leg hears. Other legs keep it. */
  async endAt(media: Pick<MediaSession, 'stopPlaying'>, leg: LegId): Promise<void> {
    if (this.#playbackOf.has(leg)) await media.stopPlaying(leg);
  }
}

interface Playing {
  legs: readonly LegId[];
  ended: Promise<PlaybackEnd>;
  isStopped: boolean;
  begin: () => void;
}

/** Reason that no leg received it. Being replaced by another sound is not a failure. */
function refusalOf(ends: readonly (SendingEnd | null)[]): ControlRefusal {
  if (ends.includes('not-listening')) return 'LEG_NOT_LISTENING';
  return ends.includes('stopped') ? 'CONTROL_BUSY' : 'INTERNAL';
}

/** Ignores legs that did not listen. Null is a failure. */
function endOf(ends: readonly (SendingEnd | null)[]): PlaybackEnd {
  return ends.some((end) => end === 'stopped' || end === null) ? 'stopped' : 'played';
}
