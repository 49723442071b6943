import { Text, Tooltip } from '@mantine/core';
import { SignalHigh, SignalLow, SignalMedium } from 'lucide-react';
import { percent } from '../parts/format.ts';
import { qualityText } from '../text/phone.ts';
import type { Quality } from './quality.ts';

const ICONS = { good: SignalHigh, fair: SignalMedium, poor: SignalLow };
const COLORS = { good: 'teal', fair: 'orange', poor: 'red' };

/** Network quality in three grades; numbers on hover and focus. */
export function QualityBadge({ quality, isCompact = false }: { quality: Quality | null; isCompact?: boolean }) {
  if (quality === null) return isCompact ? null : <Text className="quality">{qualityText.measuring}</Text>;
  const { grade, loss, jitterMs, roundTripMs } = quality;
  const Icon = ICONS[grade];
  const details = qualityText.details(percent(loss), jitterMs, roundTripMs === null ? '–' : `${roundTripMs} ms`);
  return (
    <Tooltip label={details} events={{ hover: true, focus: true, touch: true }}>
      <button type="button" className="quality" data-grade={grade} aria-label={`${qualityText[grade]}. ${details}`}>
        <Icon size={18} aria-hidden color={`var(--mantine-color-${COLORS[grade]}-text)`} />
        {!isCompact && <span>{qualityText[grade]}</span>}
      </button>
    </Tooltip>
  );
}
