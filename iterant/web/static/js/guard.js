// A classic script, because a page opened from the file system may load no modules.
(function () {
  var box = document.getElementById("trouble");
  if (location.protocol === "file:") {
    box.textContent =
      "This page was opened from the file system, and browsers let no page load its networks from " +
      "there. Serve the folder instead: run  iterant demo,  or  python -m http.server  in this " +
      "folder and open http://localhost:8000/.";
    box.className = "shown";
  } else if (!("noModule" in document.createElement("script"))) {
    box.textContent = "This browser is too old for this page: it has no JavaScript modules.";
    box.className = "shown";
  }
})();
