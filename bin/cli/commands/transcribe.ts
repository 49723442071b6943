import type { PublicTranscript } from '../../../actors/stt/transcriber.ts';
import { API_OPTIONS, openApi } from '../api-access.ts';
import { type Command, defineAction } from '../command.ts';
import { type CommandHost, pathIn } from '../host.ts';
import { table } from '../terminal.ts';

const transcribe = defineAction({
  summary: 'Transcribe an audio file. Billed by its length.',
  parameters: [{ name: 'FILE', about: 'audio or video in any common format, up to 25 MB' }],
  options: {
    language: { value: 'CODES', about: 'languages: en, or en,hi (default: detect)' },
    diarize: { about: 'label speakers; costs 30 % more' },
    words: { about: 'print every word with its timestamps and confidence' },
    keywords: { value: 'TERMS', about: 'terms to boost: Tandem:3,click to call' },
    context: { value: 'TEXT', about: 'context for refinement of the text by a language model' },
    'script-correction': { about: 'write mixed Hindi and English each in its own script' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [file = ''], terminal }) {
    const api = openApi(host, values);
    const fields = Object.entries({
      languages: values.language,
      diarize: values.diarize && 'true',
      return_timestamps: values.words && 'word',
      include_confidence: values.words && 'true',
      keywords: values.keywords,
      context: values.context,
      script_correction: values['script-correction'] && 'true',
    }).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const progress = openProgress(host.stderr);
    const transcript = await api
      .upload<PublicTranscript>('/stt', {
        filePath: pathIn(host.cwd(), file),
        fields,
        onProgress({ sentBytes, totalBytes }) {
          const percent = Math.floor((100 * sentBytes) / Math.max(1, totalBytes));
          progress.show(sentBytes < totalBytes ? `uploading ${percent} %` : 'transcribing');
        },
      })
      .finally(progress.clear);
    if (!terminal.json) for (const code of transcript.warning_codes) terminal.report(`warning: ${code}`);
    return { data: transcript, text: describe(transcript, values) };
  },
});

export const transcribeCommand: Command = { action: transcribe };

function describe(transcript: PublicTranscript, { diarize, words }: { diarize?: true; words?: true }): string {
  if (words) {
    const rows = transcript.words.map(({ start, end, word, confidence, speaker }) => [
      ...[clock(start), clock(end), word],
      confidence?.toFixed(2) ?? null,
      ...(diarize ? [speaker ?? null] : []),
    ]);
    const headings = ['START', 'END', 'WORD', 'CONFIDENCE', ...(diarize ? ['SPEAKER'] : [])];
    return `${transcript.text}\n\n${table(headings, rows, 'No words were understood.')}`;
  }
  if (!diarize) return transcript.text;
  const lines = transcript.segments.map(({ start, speaker, text }) => `${clock(start)}  ${speaker ?? '?'}: ${text}`);
  return lines.join('\n');
}

function clock(seconds: number): string {
  const hundredths = Math.round(seconds * 100);
  return `${Math.floor(hundredths / 6_000)}:${((hundredths % 6_000) / 100).toFixed(2).padStart(5, '0')}`;
}

/** A progress line for people on standard error. The transcript goes to standard output. */
function openProgress(out: CommandHost['stderr']): { show(text: string): void; clear: () => void } {
  let shown = '';
  return {
    show(text) {
      if (!out.isTTY || text === shown) return;
      shown = text;
      out.write(`\r\u001B[K${text}`);
    },
    clear: () => {
      if (shown !== '') out.write('\r\u001B[K');
    },
  };
}
