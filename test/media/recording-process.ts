import { CALL_PARTIES, RECORDING_CHANNELS, routingOf } from '../../actors/call-routing.ts';
import { framesOf, tone } from '../../media/dsp/tones.ts';
import { createMediaPlane } from '../../media/media-plane.workers.ts';
import { createSealingKeys } from '../../runtime/sealed-file/format.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

/** Records a call between two phones to the given file until killed, encrypted if a key is given. */

const [, , filePath, keyInBase64] = process.argv;
if (filePath === undefined) throw new RangeError('usage: recording-process.ts <file> [key]');
const keys = createSealingKeys(keyInBase64 === undefined ? null : Buffer.from(keyInBase64, 'base64'));
const range = await freePortRange(2);
const plane = createMediaPlane({ workers: 1, rtpHost: '127.0.0.1', rtpPortMin: range.min, rtpPortMax: range.max });
const session = await plane.openSession({
  sessionId: 'killed',
  parties: CALL_PARTIES,
  signal: new AbortController().signal,
  onEvent: () => {},
});
const agent = await RtpPhone.open();
const customer = await RtpPhone.open();
await session.connectParty('agent', agent.remote());
await session.connectParty('customer', customer.remote());
await session.setRouting(routingOf('bridged'));
await session.startRecording({ filePath, channels: RECORDING_CHANNELS, seal: keys.create('call.wav') });
const low = framesOf('PCMU', tone({ frequenciesHz: [500], durationMs: 1000 }));
const high = framesOf('PCMU', tone({ frequenciesHz: [1000], durationMs: 1000 }));
const startMs = performance.now();
let said = 0;
setInterval(() => {
  for (; said * 20 <= performance.now() - startMs; said++) {
    agent.say(session.localOf('agent').rtpPort, 'PCMU', low[said % 50]!);
    customer.say(session.localOf('customer').rtpPort, 'PCMU', high[said % 50]!);
  }
  process.stdout.write('.');
}, 20);
