import { liveText } from '../text/live.ts';

/** Thresholds of user satisfaction (ITU-T G.107, annex B). */
const GOOD = 4;
const FAIR = 3.6;

/** Estimated mean opinion score of a party. */
export function Mos({ party, mos }: { party: string; mos: number | null | undefined }) {
  const grade = mos == null ? undefined : mos >= GOOD ? 'good' : mos >= FAIR ? 'fair' : 'poor';
  return (
    <span className="mos tabular" data-grade={grade} title={liveText.mos(party)}>
      {mos == null ? liveText.mosUnknown : liveText.mosShort(mos.toFixed(1))}
    </span>
  );
}
