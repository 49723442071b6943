import { createTheme, type MantineColorsTuple } from '@mantine/core';
import { partText } from '../text/app.ts';

/** Blue whose shade 7 has a contrast of 5.5 to white (WCAG 2.2 AA needs 4.5). */
const blue: MantineColorsTuple = [
  '#e7f3ff',
  '#d0e4f7',
  '#a3c9ee',
  '#73ace4',
  '#4b93dc',
  '#3184d7',
  '#1f78cc',
  '#1864ab',
  '#125291',
  '#0b3d6e',
];

/** Red whose shade 7 has a contrast of 5.6 to white. */
const red: MantineColorsTuple = [
  '#fff5f5',
  '#ffe3e3',
  '#ffc9c9',
  '#ffa8a8',
  '#ff8787',
  '#fa5252',
  '#e03131',
  '#c92a2a',
  '#ad2323',
  '#8f1d1d',
];

const closeButtonProps = { 'aria-label': partText.close };

export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 7, dark: 7 },
  colors: { blue, red },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  defaultRadius: 'md',
  autoContrast: true,
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: 'sm' } },
    Modal: { defaultProps: { centered: true, closeButtonProps } },
    Drawer: { defaultProps: { closeButtonProps } },
    Notification: { defaultProps: { closeButtonProps } },
    // 24 pixels: the smallest target that WCAG 2.2 AA allows beside others.
    Radio: { defaultProps: { size: 'md' } },
    Checkbox: { defaultProps: { size: 'md' } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300 } },
  },
});

/** The policy of the page allows only style elements that carry this nonce. */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
}
