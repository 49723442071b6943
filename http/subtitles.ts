/** Subtitle formats: SubRip and WebVTT (W3C, WebVTT §4). */
export const SUBTITLE_MEDIA_TYPES = { srt: 'application/x-subrip', vtt: 'text/vtt' } as const;

interface Cue {
  /** Seconds. */
  start: number;
  /** Seconds. */
  end: number;
  text: string;
}

/** Formats one cue for each segment with text. */
export function subtitlesOf(segments: readonly Cue[], format: keyof typeof SUBTITLE_MEDIA_TYPES): string {
  const cues = segments.map(cueOf).filter(({ text }) => text !== '');
  if (format === 'srt') {
    const blocks = cues.map(({ start, end, text }, index) => {
      return `${index + 1}\n${timeOf(start, ',')} --> ${timeOf(end, ',')}\n${text}\n`;
    });
    return blocks.join('\n');
  }
  const blocks = cues.map(
    ({ start, end, text }) => `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${escaped(text)}\n`,
  );
  return ['WEBVTT\n', ...blocks].join('\n');
}

/** A recogniser may give a word no duration, and players skip a cue without one. */
const SHORTEST_S = 0.5;

function cueOf({ start, end, text }: Cue): Cue {
  const isEmpty = Math.round(end * 1000) <= Math.round(start * 1000);
  return { start, end: isEmpty ? start + SHORTEST_S : end, text: lineOf(text) };
}

/** Removes line breaks, because a blank line would end the cue. */
function lineOf(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Escapes `<` and `&`, which WebVTT reads as a tag and a character reference. */
function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

function timeOf(seconds: number, point: ',' | '.'): string {
  const ms = Math.round(seconds * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const whole = `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}`;
  return `${whole}${point}${String(ms % 1000).padStart(3, '0')}`;
}
