import { GaussianVoice } from './gaussian-voice.ts';
import { type Cepstra, FRAME_MS } from './mfcc.ts';

/** A stretch that seems to have a single speaker. */
export interface Turn {
  /** Frames [from, to) of the utterance. */
  from: number;
  to: number;
  voice: GaussianVoice;
}

/**
 * Cuts an utterance at its pauses, and continuous speech at its quietest moments every second or two, then rejoins
 * neighbours with similar voices. [] for an utterance without sound.
 */
export function turnsOf(cepstra: Cepstra): Turn[] {
  const isSpeech = speechFramesOf(cepstra.levelsDb);
  const turns = piecesOf(cepstra.levelsDb, isSpeech).map(({ from, to }) => ({
    from,
    to,
    voice: GaussianVoice.of(cepstra, framesBetween(from, to, isSpeech)),
  }));
  joinWhile(turns, (left, right) => Math.min(left.voice.frames, right.voice.frames) < SHORTEST_TURN_FRAMES);
  joinWhile(turns, (left, right) => left.voice.distanceTo(right.voice) < ONE_TURN);
  return turns;
}

/** Neighbours this similar are joined. Stricter than between whole voices, because turns are short. */
const ONE_TURN = 0.8;
const PAUSE_FRAMES = 300 / FRAME_MS;
const LONGEST_PIECE_FRAMES = 2_000 / FRAME_MS;
/** Less speech characterises no voice. */
const SHORTEST_TURN_FRAMES = 300 / FRAME_MS;

/** Anything quieter, relative to the loudest, is not speech, nor is anything hardly louder than the background. */
const SPEECH_RANGE_DB = 30;
const ABOVE_BACKGROUND_DB = 6;

function speechFramesOf(levelsDb: Float64Array): (frame: number) => boolean {
  const sorted = levelsDb.toSorted();
  const background = sorted[Math.floor(sorted.length * 0.1)] ?? 0;
  const loudest = sorted[Math.floor(sorted.length * 0.95)] ?? 0;
  // Speech without any pause has no background level.
  const threshold = Math.max(Math.min(background + ABOVE_BACKGROUND_DB, loudest - 10), loudest - SPEECH_RANGE_DB);
  return (frame) => levelsDb[frame]! > threshold;
}

function piecesOf(levelsDb: Float64Array, isSpeech: (frame: number) => boolean): { from: number; to: number }[] {
  const pieces: { from: number; to: number }[] = [];
  let from = -1;
  let lastSpeech = -1;
  const close = (to: number) => {
    if (from >= 0) pieces.push({ from, to });
    from = -1;
  };
  for (let frame = 0; frame < levelsDb.length; frame++) {
    if (!isSpeech(frame)) {
      if (frame - lastSpeech === PAUSE_FRAMES) close(lastSpeech + 1);
      continue;
    }
    if (from < 0) from = frame;
    lastSpeech = frame;
    if (frame - from + 1 >= LONGEST_PIECE_FRAMES) {
      const cut = quietestBetween(levelsDb, from + LONGEST_PIECE_FRAMES / 2, frame);
      close(cut);
      from = cut;
    }
  }
  close(lastSpeech + 1);
  return pieces;
}

function quietestBetween(levelsDb: Float64Array, from: number, to: number): number {
  let quietest = from;
  for (let frame = from; frame <= to; frame++) {
    if (levelsDb[frame]! < levelsDb[quietest]!) quietest = frame;
  }
  return quietest;
}

function* framesBetween(from: number, to: number, isSpeech: (frame: number) => boolean): Iterable<number> {
  for (let frame = from; frame < to; frame++) {
    if (isSpeech(frame)) yield frame;
  }
}

/** Joins allowed neighbours, most similar first. */
function joinWhile(turns: Turn[], mayJoin: (left: Turn, right: Turn) => boolean): void {
  for (;;) {
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let index = 0; index + 1 < turns.length; index++) {
      const [left, right] = [turns[index]!, turns[index + 1]!];
      const distance = left.voice.distanceTo(right.voice);
      if (distance < least && mayJoin(left, right)) [best, least] = [index, distance];
    }
    if (best < 0) return;
    const [left, right] = [turns[best]!, turns[best + 1]!];
    turns.splice(best, 2, { from: left.from, to: right.to, voice: left.voice.joinedWith(right.voice) });
  }
}
