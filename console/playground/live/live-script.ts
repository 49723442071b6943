import { KEY_VARIABLE } from '../command.ts';
import { FRAME_MS, type LiveSettings, SAMPLE_RATES, startMessageOf } from './live-session.ts';

/** Default file of the script. */
export function audioFileOf({ encoding }: LiveSettings): string {
  return encoding === 'mulaw' ? 'speech.ulaw' : 'speech.raw';
}

/**
 * Generates a Node program (22 or newer, without packages) that streams a file of raw audio with the form's settings.
 */
export function liveScriptOf(settings: LiveSettings, origin: string): string {
  const { encoding } = settings;
  const sampleRate = SAMPLE_RATES[encoding];
  const frameBytes = ((sampleRate * FRAME_MS) / 1_000) * (encoding === 'mulaw' ? 1 : 2);
  const frame = `audio.subarray(at, at + ${frameBytes})`;
  const send =
    encoding === 'mulaw'
      ? frame
      : `JSON.stringify({ type: 'audio', audio: ${frame}.toString('base64'), encoding: 'linear', sample_rate: ${sampleRate} })`;
  return `import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const audio = readFileSync(process.argv[2] ?? '${audioFileOf(settings)}');
const start = ${JSON.stringify(startMessageOf(settings), null, 2)};

const url = ${JSON.stringify(new URL('/ws/stt', origin.replace(/^http/, 'ws')).href)};
const socket = new WebSocket(url, ['token', process.env.${KEY_VARIABLE}]);
socket.onmessage = async ({ data }) => {
  const message = JSON.parse(data);
  if (message.type === 'error') console.error(message);
  if (message.server_info) socket.send(JSON.stringify(start));
  if (message.speech_final) console.log(message.text);
  if (message.type !== 'session_started') return;
  for (let at = 0; at < audio.length; at += ${frameBytes}, await pause(${FRAME_MS})) {
    socket.send(${send});
  }
  socket.send(JSON.stringify({ type: 'stop' }));
};
`;
}
