import { speechSnrDb } from '../dsp/speech-snr.ts';
import type { StreamAnalysis } from '../listening-plane.ts';
import type { ChannelListener } from './channel-listener.ts';
import { WINDOW_MS } from './windows.ts';

export function channelTotals(channels: readonly ChannelListener[]): StreamAnalysis {
  let speechWindows = 0;
  let weightedSnrDb = 0;
  let weight = 0;
  for (const { segmenter } of channels) {
    const totals = segmenter.totals();
    speechWindows += totals.speechWindows;
    if (totals.backgroundPower === null || totals.speechWindows === 0) continue;
    weight += totals.speechWindows;
    weightedSnrDb +=
      totals.speechWindows * speechSnrDb(totals.speechPower / totals.speechWindows, totals.backgroundPower);
  }
  return {
    durationMs: Math.max(...channels.map((channel) => channel.durationMs)),
    speechMs: speechWindows * WINDOW_MS,
    snrDb: weight === 0 ? null : weightedSnrDb / weight,
  };
}
