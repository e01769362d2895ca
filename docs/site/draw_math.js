// Formulas stand in the pages as TeX between \[ \] or \( \).
document.addEventListener('DOMContentLoaded', () => {
  for (const element of document.querySelectorAll('.arithmatex')) {
    const text = element.textContent.trim();
    const inner = text.replace(/^\\[[(]/, '').replace(/\\[\])]$/, '');
    katex.render(inner, element, { displayMode: text.startsWith('\\['), throwOnError: true });
  }
});
