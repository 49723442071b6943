import { useMediaQuery } from '@mantine/hooks';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { callsText } from '../text/calls.ts';
import { CallCells, type ListedCall } from './call-row.tsx';
import './calls.css';

/** As in `calls.css`. */
const ROW_PX = 40;
const COMPACT_ROW_PX = 68;
const COMPACT = '(max-width: 78em)';
const NARROW_ROW_PX = 94;
const NARROW = '(max-width: 48em)';
const OVERSCAN_ROWS = 12;

interface CallListProps {
  calls: readonly ListedCall[];
  hasMore: boolean;
  isLoadingMore: boolean;
  onMore: () => void;
}

/** All calls in one virtual list: only rows near the window exist, so 100,000 calls scroll like ten. */
export function CallList({ calls, hasMore, isLoadingMore, onMore }: CallListProps) {
  const isCompact = useMediaQuery(COMPACT, false, { getInitialValueInEffect: false });
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const rowPx = isNarrow ? NARROW_ROW_PX : isCompact ? COMPACT_ROW_PX : ROW_PX;
  const body = useRef<HTMLTableSectionElement>(null);
  const [topPx, setTopPx] = useState(0);
  // Content above the list can change its height.
  useLayoutEffect(() => {
    const measure = () => setTopPx((body.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const rows = useWindowVirtualizer({
    count: calls.length,
    estimateSize: () => rowPx,
    overscan: OVERSCAN_ROWS,
    scrollMargin: topPx,
    getItemKey: (index) => calls[index]!.call_id,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows have another height now
  useEffect(() => rows.measure(), [rowPx]);
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && !isLoadingMore && last >= calls.length - 2 * OVERSCAN_ROWS) onMore();
  }, [hasMore, isLoadingMore, last, calls.length, onMore]);
  return (
    <table aria-label={callsText.list} aria-rowcount={hasMore ? -1 : calls.length + 1} className="call-list">
      <thead>
        <tr className="call-row call-row-head">
          {COLUMNS.map(({ id, header, align }) => (
            <th scope="col" key={id} data-column={id} data-align={align}>
              {header}
            </th>
          ))}
        </tr>
      </thead>
      <tbody
        ref={body}
        className="call-rows"
        style={{ height: rows.getTotalSize() }}
        onKeyDown={(event) => moveFocus(event, (index) => rows.scrollToIndex(index))}
      >
        {shown.map(({ index, key, start }) => (
          <tr
            key={key}
            aria-rowindex={index + 2}
            data-index={index}
            className="call-row"
            style={{ transform: `translateY(${start - topPx}px)` }}
          >
            <CallCells call={calls[index]!} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const COLUMNS = [
  { id: 'state', header: callsText.columns.state },
  { id: 'time', header: callsText.columns.time },
  { id: 'parties', header: callsText.columns.parties },
  { id: 'talk', header: callsText.columns.talk, align: 'right' },
  { id: 'cost', header: callsText.columns.cost, align: 'right' },
  { id: 'reference', header: callsText.columns.reference },
];

function moveFocus(event: KeyboardEvent<HTMLElement>, reveal: (index: number) => void): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
  if (step === undefined || row === null) return;
  const index = Number(row.dataset.index) + step;
  const next = event.currentTarget.querySelector<HTMLElement>(`[data-index="${index}"] a`);
  if (next === null) return;
  event.preventDefault();
  reveal(index);
  next.focus({ preventScroll: true });
}
