import { liveText } from '../text/live.ts';
import type { LegLevel } from './live-data.ts';

/** Range of speech; below it is line noise. */
const FLOOR_DBOV = -60;
const TOP_DBOV = -8;

interface LevelProps {
  party: string;
  level: LegLevel | undefined;
}

/** Current loudness of a party. */
export function Level({ party, level }: LevelProps) {
  const dbov = Math.max(-96, Math.min(0, level?.level_dbov ?? -96));
  const share = Math.max(0, Math.min(1, (dbov - FLOOR_DBOV) / (TOP_DBOV - FLOOR_DBOV)));
  const isSpeaking = level?.speaking ?? false;
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers draw a meter element in colors of their own
    <div
      className="level"
      role="meter"
      aria-label={liveText.level(party)}
      aria-valuemin={-96}
      aria-valuemax={0}
      aria-valuenow={Math.round(dbov)}
      aria-valuetext={isSpeaking ? liveText.speaking : liveText.silent}
      data-speaking={isSpeaking}
    >
      <div style={{ transform: `scaleX(${share.toFixed(3)})` }} />
    </div>
  );
}
