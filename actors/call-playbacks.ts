import type { CallControl, ControlRefusal } from '../machines/call-control.ts';
import type { LegId } from '../machines/events.ts';
import type { MediaSession, PlaybackEnd, SendingEnd } from '../media/media-plane.ts';

type PlayControl = Extract<CallControl, { type: 'play' }>;

/** The sounds that controls play to the legs of one call, from the request to their end. */
export class CallPlaybacks {
  readonly #playing = new Map<string, Playing>();
  /** The one that each leg hears. */
  readonly #heardBy = new Map<LegId, string>();

  /** Resolves when the first leg hears it, or why none does. The samples go to the media and must not be used again. */
  async play(
    media: Pick<MediaSession, 'play'>,
    { playbackId, legs, isLooped }: PlayControl,
    samples: Int16Array<ArrayBuffer>,
  ): Promise<ControlRefusal | null> {
    const begun = Promise.withResolvers<ControlRefusal | null>();
    const ends = legs.map(async (leg, i) => {
      this.#heardBy.set(leg, playbackId);
      // The media takes what it is given. The last leg gets the samples themselves, so that none are kept here.
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
      if (this.#heardBy.get(leg) === playbackId) this.#heardBy.delete(leg);
      return end;
    });
    const ended = Promise.all(ends).then((all) => {
      this.#playing.delete(playbackId);
      // Nothing happens if a leg has heard it.
      begun.resolve(refusalOf(all));
      return endOf(all);
    });
    this.#playing.set(playbackId, { legs, ended, isStopped: false, begin: () => begun.resolve(null) });
    return await begun.promise;
  }

  /** The first of it is on its way to a leg. */
  begin(playbackId: string): void {
    this.#playing.get(playbackId)?.begin();
  }

  /** Resolves with how it ended; null when `stop` ended it, or it is over already. */
  async end(playbackId: string): Promise<PlaybackEnd | null> {
    const playing = this.#playing.get(playbackId);
    if (playing === undefined) return null;
    const end = await playing.ended;
    return playing.isStopped ? null : end;
  }

  /** Resolves when no leg hears it any more. */
  async stop(media: Pick<MediaSession, 'stopPlaying'>, playbackId: string): Promise<ControlRefusal | null> {
    const playing = this.#playing.get(playbackId);
    if (playing === undefined || playing.isStopped) return 'PLAYBACK_NOT_FOUND';
    playing.isStopped = true;
    // A leg that hears another sound by now keeps it.
    const hearing = playing.legs.filter((leg) => this.#heardBy.get(leg) === playbackId);
    await Promise.all(hearing.map((leg) => media.stopPlaying(leg)));
    await playing.ended;
    return null;
  }
}

interface Playing {
  legs: readonly LegId[];
  ended: Promise<PlaybackEnd>;
  /** A control has asked for its end. */
  isStopped: boolean;
  begin: () => void;
}

/** Why nothing began: a sound that another one ended had no fault. */
function refusalOf(ends: readonly (SendingEnd | null)[]): ControlRefusal {
  if (ends.includes('not-listening')) return 'LEG_NOT_LISTENING';
  return ends.includes('stopped') ? 'CONTROL_BUSY' : 'INTERNAL';
}

/** Whoever did not listen does not count; null is a failure. */
function endOf(ends: readonly (SendingEnd | null)[]): PlaybackEnd {
  return ends.some((end) => end === 'stopped' || end === null) ? 'stopped' : 'played';
}
