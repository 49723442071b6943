import { encodeG711 } from '../media/codecs/g711.ts';
import { DtmfDetector } from '../media/dsp/dtmf-detector.ts';
import { dtmfTones } from '../media/dsp/dtmf-tones.ts';
import { meanPowerOfG711 } from '../media/dsp/level.ts';

/**
 * CPU time of DTMF detection in a packet of 20 ms of G.711. References: the level measurement, which the relay does
 * anyway, and Debian's libspandsp2, in C on decoded samples, through koffi. Contenders alternate; the fastest round
 * counts.
 */

const ROUNDS = 8;
const PACKETS = 2000;
const PACKET_OCTETS = 160;

const speech = Int16Array.from({ length: PACKETS * PACKET_OCTETS }, (_, i) => {
  const t = i / 8000;
  const level = 4000 * (1 + Math.sin(2 * Math.PI * 3 * t));
  return level * (Math.sin(2 * Math.PI * 190 * t) + 0.6 * Math.sin(2 * Math.PI * 760 * t) + 0.2 * Math.random());
});
const keys = dtmfTones('159D'.repeat(60), 100).subarray(0, PACKETS * PACKET_OCTETS);
const materials: Record<string, Int16Array> = { speech, keys, silence: new Int16Array(PACKETS * PACKET_OCTETS) };
const spandsp = await openSpandsp();
if (spandsp === null) console.log('libspandsp2 (Debian) is not installed; the level is the only reference.');

console.log(`CPU a packet of 20 ms, the best of ${ROUNDS} rounds of ${PACKETS} packets`);
for (const [material, samples] of Object.entries(materials)) {
  const packets = Math.floor(samples.length / PACKET_OCTETS);
  const octets = new Uint8Array(samples.length);
  encodeG711('PCMU', samples, octets);
  let presses = 0;
  const detector = new DtmfDetector(() => {
    presses += 1;
  });
  const contenders: Record<string, (from: number, to: number) => void> = {
    detector: (from, to) => detector.addG711('PCMU', octets, from, to),
    level: (from, to) => void meanPowerOfG711('PCMU', octets, from, to),
    ...(spandsp !== null && { libspandsp2: (from, to) => spandsp(samples.subarray(from, to)) }),
  };
  const best = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, work] of Object.entries(contenders)) {
      const ns = timedNs(packets, work);
      best.set(name, Math.min(best.get(name) ?? ns, ns));
    }
  }
  const ours = best.get('detector')!;
  const ratios = [...best].filter(([name]) => name !== 'detector');
  const against = ratios
    .map(([name, ns]) => `${(ours / ns).toFixed(1)} times ${name} (${ns.toFixed(0)} ns)`)
    .join(', ');
  console.log(`${material.padEnd(8)} ${ours.toFixed(0)} ns, ${against}; ${presses} presses`);
}

function timedNs(packets: number, work: (from: number, to: number) => void): number {
  const { user, system } = process.cpuUsage();
  for (let at = 0; at < packets; at++) work(at * PACKET_OCTETS, (at + 1) * PACKET_OCTETS);
  const after = process.cpuUsage({ user, system });
  return ((after.user + after.system) * 1000) / packets;
}

/** Null if the library is missing. */
async function openSpandsp(): Promise<((samples: Int16Array) => void) | null> {
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load('libspandsp.so.2');
    const state = library.func('void *dtmf_rx_init(void *, void *, void *)')(null, null, null);
    const receive = library.func('int dtmf_rx(void *state, int16_t *samples, int count)');
    return (samples) => receive(state, samples, samples.length);
  } catch {
    return null;
  }
}
