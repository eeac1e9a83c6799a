// Runs before anything is drawn, so that a chosen theme does not flash in the other one first.
try {
  document.documentElement.dataset.theme = localStorage.getItem("herdr-theme") ?? "";
} catch {
  /* storage is forbidden here: the system's theme it is */
}
